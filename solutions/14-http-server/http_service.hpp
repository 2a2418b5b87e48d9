// SPDX-License-Identifier: MIT
// The service of one thread: it accepts clients, serves them, and stops in an orderly way.
// Owns     its listener, and every connection until it has ended.
// Lifetime the context, the site and `stop_fd` must outlive it.
// Threads  the one that runs the context.
// Errors   serve_until_stopped() throws std::system_error if the listener or the ring is broken.
// Rule     it has at most connections_max + 1 clients: if it is full, it accepts one more, and ends
//          the client that has been idle for longest. If none is idle, the new client waits, and
//          the others stay in the backlog, because each accept takes one: a multishot takes all.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <utility>

#include "accepted.hpp"
#include "cancel_source.hpp"
#include "errors.hpp"
#include "finally.hpp"
#include "http_connection.hpp"
#include "http_site.hpp"
#include "io_context.hpp"
#include "last_waits.hpp"
#include "operations.hpp"
#include "scope.hpp"
#include "task.hpp"
#include "todo.hpp"
#include "unique_fd.hpp"
#include "when_any.hpp"

namespace uring::http {

class http_service {
 public:
  static constexpr std::chrono::milliseconds accept_retry_ms{1000};
  static constexpr std::chrono::milliseconds log_period_ms{250};

  http_service(io_context& context, common::unique_fd listener, int stop_fd, http_site& site)
      : context_{context}, listener_{std::move(listener)}, stop_fd_{stop_fd}, site_{site} {}
  http_service(http_service&&) = delete;         // its tasks hold its address
  ~http_service() { clients_.destroy_tasks(); }  // before the members that its tasks use

  // Ends when the listener is broken, or when a stop was requested and all clients have gone.
  task<> serve_until_stopped() {
    (void)co_await when_any(ended_, serve_and_write_log(),
                            exit_if_stuck(ended_, stop_fd_, site_.options.drain_ms));
  }

 private:
  task<> serve_and_write_log() {
    (void)co_await when_any(over_, clients_.run(accept_clients()), stop_in_order(), sweep(),
                            write_log());
    if (site_.log.is_open()) co_await write_last_lines(last_words_, site_);
  }

  // Waits until a stop is requested, and then stops in an orderly way. You need:
  //   accepting_               the source under which clients are accepted: its cancel() closes the
  //                            listener, and the kernel resets the clients in the listener's queue
  //   site_.is_draining        while it is true, each answer is the last one of its connection
  //   site_.limits.end_idle()  closes the connections that are idle, and those that become idle
  //                            later, which a loop over end_longest_idle() would miss
  //   site_.options.drain_ms   how long clients may still take: wait with a timeout_op() under
  //                            over_, which is canceled when the last client has gone
  // When this task ends, when_any() cancels over_, and with it the clients that are still there.
  task<> stop_in_order() {
    (void)co_await poll_op(over_, stop_fd_, POLLIN);
    // --8<-- [start:task-14-5]
    accepting_.cancel();
    site_.is_draining = true;
    site_.limits.end_idle();
    (void)co_await timeout_op(over_, site_.options.drain_ms);
    // --8<-- [end:task-14-5]
  }

  task<> accept_clients() {
    accept_each arriving{accepting_, listener_.get()};
    co_await finally(serve_each(arriving), arriving.end());
    listener_.reset();
  }

  task<> serve_each(accept_each& arriving) {
    for (;;) {
      accepted next = co_await arriving.next();
      if (next.client.valid()) {
        while (is_full() && !accepting_.is_canceled()) co_await make_room();
        clients_.spawn(serve(std::move(next.client)));
        continue;
      }
      if (next.result.error() == ECANCELED) co_return;
      switch (common::classify_accept_errno(next.result.error())) {
        case common::accept_failure::try_again:
        case common::accept_failure::nothing_waiting:
          break;
        case common::accept_failure::out_of_descriptors:
          co_await make_room();
          break;
        case common::accept_failure::listener_broken:
          next.result.or_throw("accept");
      }
    }
  }

  [[nodiscard]] bool is_full() const noexcept { return count_ >= site_.options.connections_max; }

  // Ends the client that was idle for longest. Waits until one has left, or for accept_retry_ms.
  task<> make_room() {
    if (site_.limits.end_longest_idle()) site_.counted_here.add(counted::evicted_idle);
    cancel_source pause{child_of{accepting_}};
    until_one_leaves_ = &pause;
    (void)co_await timeout_op(pause, accept_retry_ms);
    until_one_leaves_ = nullptr;
  }

  task<> serve(common::unique_fd socket) {
    site_.counted_here.add(counted::connections);
    if (++count_ == 1 && until_one_comes_ != nullptr) until_one_comes_->cancel();
    http_connection client{site_, clients_.source(), socket.get()};
    co_await client.run();
    socket.reset();
    --count_;
    if (until_one_leaves_ != nullptr) until_one_leaves_->cancel();
  }

  // One timer checks the time limits of all clients. Without clients, it waits for the first one.
  task<> sweep() {
    while (!over_.is_canceled()) {
      if (count_ == 0) {
        cancel_source pause{child_of{over_}};
        until_one_comes_ = &pause;
        (void)co_await timeout_op(pause, std::chrono::hours{24});
        until_one_comes_ = nullptr;
        continue;
      }
      (void)co_await timeout_op(over_, site_.limits.period());
      site_.limits.sweep(coarse_now());
    }
  }

  // Writes the log from time to time. write_last_lines() writes the lines that are left at the end.
  task<> write_log() {
    for (;;) {
      (void)co_await timeout_op(over_, site_.log.is_open() ? log_period_ms : log_never_ms);
      if (over_.is_canceled()) co_return;
      co_await site_.log.write_out(over_);
    }
  }
  static constexpr std::chrono::milliseconds log_never_ms{std::chrono::hours{24}};

  io_context& context_;
  common::unique_fd listener_;
  int stop_fd_;
  http_site& site_;
  cancel_source over_{context_};              // canceled: the last client is gone, or a task failed
  scope clients_{context_, child_of{over_}};  // also holds the task that accepts clients
  cancel_source accepting_{child_of{clients_.source()}};
  cancel_source last_words_{context_};
  cancel_source ended_{context_};
  cancel_source* until_one_leaves_ = nullptr;
  cancel_source* until_one_comes_ = nullptr;
  std::size_t count_ = 0;  // clients that are being served
};

}  // namespace uring::http
