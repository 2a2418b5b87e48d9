// SPDX-License-Identifier: MIT
// An echo server that closes silent clients, and whose stop is a tree of tasks that ends.
// Owns     its listener, and every session until it has ended.
// Lifetime `stop` must outlive it.
// Threads  the one that made it runs it.
// Errors   run() throws std::system_error if the listener or the ring is broken; how a client's
//          connection ends concerns that client only.
// Rule     at a stop nobody waits for more; what has arrived is echoed, for stop_grace_ms at most.
#pragma once

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "bounded_echo.hpp"
#include "bounded_io.hpp"
#include "cancel_source.hpp"
#include "errors.hpp"
#include "io_context.hpp"
#include "operations.hpp"
#include "ring_options.hpp"
#include "scope.hpp"
#include "stop_signal.hpp"
#include "task.hpp"
#include "unique_fd.hpp"
#include "when_any.hpp"

namespace uring {

class idle_echo {
 public:
  static constexpr std::chrono::milliseconds stop_grace_ms{1000};
  static constexpr std::chrono::milliseconds accept_retry_ms{1000};
  static constexpr unsigned sq_entries_min = 2;  // a request and its deadline, together

  // Without `idle_timeout` nobody is closed for being silent.
  idle_echo(common::unique_fd listener, const common::stop_signal& stop,
            std::optional<std::chrono::nanoseconds> idle_timeout, const ring_options& options = {})
      : listener_{std::move(listener)},
        stop_fd_{stop.fd()},
        echo_{context_, idle_timeout, waiting_, sessions_.source()},
        context_{with_room_for_pairs(options)} {}
  idle_echo(idle_echo&&) = delete;  // its tasks hold its address

  void run() { context_.run(serve_until_stopped()); }

 private:
  // Ends when the listener is broken, or when a stop was asked for and all sessions have ended.
  task<> serve_until_stopped() {
    cancel_source over;
    (void)co_await when_any(over, accept_and_serve(), stop_in_order(over));
  }

  task<> accept_and_serve() {
    sessions_.spawn(accept_clients());
    co_await sessions_.join();
  }

  // At first nobody waits for more; who has not taken its echo a while later does not get it.
  task<> stop_in_order(cancel_source& over) {
    (void)co_await cancelable(poll_op(context_, stop_fd_, POLLIN), over);
    waiting_.cancel();
    (void)co_await cancelable(timeout_op(context_, stop_grace_ms), over);
    sessions_.cancel();
  }

  task<> accept_clients() {
    while (!waiting_.is_canceled()) {
      const io_result accepted =
          co_await cancelable(accept_op(context_, listener_.get()), waiting_);
      common::unique_fd client{accepted.fd()};
      if (client.valid()) {
        sessions_.spawn(serve(std::move(client)));
        continue;
      }
      if (accepted.error() == ECANCELED) break;
      switch (common::classify_accept_errno(accepted.error())) {
        case common::accept_failure::try_again:
        case common::accept_failure::nothing_waiting:
          break;
        case common::accept_failure::out_of_descriptors:
          co_await wait_for_a_client_to_leave();
          break;
        case common::accept_failure::listener_broken:
          accepted.or_throw("accept");
      }
    }
    listener_.reset();
  }

  // Or for a while: the limit may be the system's, and others give way as well.
  task<> wait_for_a_client_to_leave() {
    cancel_source pause{child_of{waiting_}};
    until_one_leaves_ = &pause;
    (void)co_await cancelable(timeout_op(context_, accept_retry_ms), pause);
    until_one_leaves_ = nullptr;
  }

  task<> serve(common::unique_fd socket) {
    co_await echo_.run(socket.get());
    socket.reset();
    if (until_one_leaves_ != nullptr) until_one_leaves_->cancel();
  }

  static ring_options with_room_for_pairs(ring_options options) {
    options.sq_entries = std::max(options.sq_entries, sq_entries_min);
    return options;
  }

  common::unique_fd listener_;
  int stop_fd_;
  scope sessions_{context_};                             // and the task that accepts
  cancel_source waiting_{child_of{sessions_.source()}};  // of who waits for a client or its bytes
  cancel_source* until_one_leaves_ = nullptr;
  bounded_echo echo_;
  io_context context_;  // destroyed first: its tasks know all of the above
};

}  // namespace uring
