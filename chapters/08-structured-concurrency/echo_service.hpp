// SPDX-License-Identifier: MIT
// A server whose tasks form a tree. A stop cancels waits, and the tree ends from the bottom up. The
// server runs Echo::run() in a task for each client that it gets from Clients.
// Owns     its listener, and every session until it has ended.
// Lifetime the context and `stop_fd` must outlive it.
// Threads  the one that runs the context.
// Errors   serve_until_stopped() throws std::system_error if the listener or the ring is broken;
//          how a client's connection ends concerns that client only.
// Rule     a stop ends the waits for more clients and bytes. The service echoes bytes that have
//          arrived, for stop_grace_ms at most.
#pragma once

#include <poll.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <utility>

#include "accepted.hpp"
#include "cancel_source.hpp"
#include "errors.hpp"
#include "finally.hpp"
#include "io_context.hpp"
#include "operations.hpp"
#include "scope.hpp"
#include "task.hpp"
#include "unique_fd.hpp"
#include "when_any.hpp"

namespace uring {

// Clients is made from what Listener::get() returns. The listener is reset when the accepting ends.
template <typename Echo, typename Clients = accept_each, typename Listener = common::unique_fd>
class echo_service {
 public:
  static constexpr std::chrono::milliseconds stop_grace_ms{1000};
  static constexpr std::chrono::milliseconds accept_retry_ms{1000};

  // Makes the Echo from `options` and from the two sources that end it.
  template <typename... Options>
  echo_service(io_context& context, Listener listener, int stop_fd, Options&... options)
      : context_{context},
        listener_{std::move(listener)},
        stop_fd_{stop_fd},
        echo_{options..., waiting_, sessions_.source()} {}
  echo_service(echo_service&&) = delete;          // its tasks hold its address
  ~echo_service() { sessions_.destroy_tasks(); }  // before the members that its tasks use

  // Ends when the listener is broken, or when a stop was asked for and all sessions have ended.
  task<> serve_until_stopped() {
    cancel_source over{context_};
    (void)co_await when_any(over, sessions_.run(accept_clients()), stop_in_order(over));
  }

 private:
  // First, only the waits for more clients and bytes end. After stop_grace_ms the others end, too:
  // a client that has not taken its whole echo by then loses the rest.
  task<> stop_in_order(cancel_source& over) {
    (void)co_await poll_op(over, stop_fd_, POLLIN);
    waiting_.cancel();
    (void)co_await timeout_op(over, stop_grace_ms);
    sessions_.cancel();
  }

  task<> accept_clients() {
    Clients arriving{waiting_, listener_.get()};
    co_await finally(serve_each(arriving), arriving.end());
    listener_.reset();
  }

  task<> serve_each(Clients& arriving) {
    for (;;) {
      auto next = co_await arriving.next();  // accepted, or a type with the same members
      if (next.client.valid()) {
        sessions_.spawn(serve(std::move(next.client)));
        continue;
      }
      if (next.result.error() == ECANCELED) co_return;
      switch (common::classify_accept_errno(next.result.error())) {
        case common::accept_failure::try_again:
        case common::accept_failure::nothing_waiting:
          break;
        case common::accept_failure::out_of_descriptors:
          if (left_ == left_at_limit_) co_await wait_for_a_client_to_leave();
          left_at_limit_ = left_;
          break;
        case common::accept_failure::listener_broken:
          next.result.or_throw("accept");
      }
    }
  }

  // The pause has a limit because other programs may close descriptors, too.
  task<> wait_for_a_client_to_leave() {
    cancel_source pause{child_of{waiting_}};
    until_one_leaves_ = &pause;
    (void)co_await timeout_op(pause, accept_retry_ms);
    until_one_leaves_ = nullptr;
  }

  task<> serve(auto socket) {
    co_await echo_.run(socket.get());
    socket.reset();
    ++left_;
    if (until_one_leaves_ != nullptr) until_one_leaves_->cancel();
  }

  io_context& context_;
  Listener listener_;
  int stop_fd_;
  scope sessions_{context_};                             // the clients' tasks and the accepting one
  cancel_source waiting_{child_of{sessions_.source()}};  // ends waits for clients and their bytes
  cancel_source* until_one_leaves_ = nullptr;
  std::size_t left_ = 0;           // how many clients have left
  std::size_t left_at_limit_ = 0;  // what left_ was when the last accept found no descriptor
  Echo echo_;
};

}  // namespace uring
