// SPDX-License-Identifier: MIT
// An echo server of coroutines: one accepts, one waits for the stop, one serves each client.
// Owns     the listener, the context, and with it every task.
// Lifetime run() returns when a stop was asked for and all tasks have ended.
// Threads  the thread that made it calls run(), and no other.
// Errors   std::system_error if the ring or the listener fails; a client's ends only that client.
// Rule     a client has one operation in flight: it is received from, then sent to, and its buffer
//          is a local variable of its coroutine.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <unordered_set>
#include <utility>

#include "errors.hpp"
#include "io_context.hpp"
#include "operations.hpp"
#include "ring_options.hpp"
#include "scope_exit.hpp"
#include "stop_signal.hpp"
#include "task.hpp"
#include "todo.hpp"
#include "unique_fd.hpp"

namespace uring {

inline constexpr std::size_t echo_buffer_bytes = 4096;

// Sends back what comes until there will be no more, or until an operation fails for good: then the
// client is lost, and that is nobody else's business. Receive; send all of what came, going on
// where a short send stopped; receive again. Make again what is_passing().
inline task<> echo_until_eof(io_context& context, int socket) {
  std::array<std::byte, echo_buffer_bytes> buffer;
  COURSE_TODO("07.5");
}

class echo_server {
 public:
  static constexpr std::chrono::milliseconds stop_grace_ms{1000};
  static constexpr std::chrono::milliseconds accept_retry_ms{1000};

  // `listener` must be blocking, as every socket here.
  echo_server(common::unique_fd listener, const common::stop_signal& stop,
              const ring_options& options = {})
      : listener_{std::move(listener)}, context_{options} {
    context_.spawn(stop_when_asked(stop.fd()));
    context_.spawn(accept_clients());
  }

  void run() { context_.run(); }

  [[nodiscard]] std::size_t client_count() const noexcept { return clients_.size(); }

 private:
  task<> serve(common::unique_fd socket) {
    clients_.insert(socket.get());
    const scope_exit leaving{[this, &socket] { leave(socket); }};
    co_await echo_until_eof(context_, socket.get());
  }

  // Accepts and spawns until it is told to stop.
  task<> accept_clients() {
    while (!stopping_) {
      io_awaitable accepting{accept_op(context_, listener_.get())};
      accepting_ = &accepting;
      const io_result accepted = co_await accepting;
      accepting_ = nullptr;
      common::unique_fd client{accepted.fd()};  // a negative one closes nothing
      if (stopping_) break;
      if (client.valid()) {
        context_.spawn(serve(std::move(client)));
      } else {
        co_await after_failed_accept(accepted);
      }
    }
    listener_.reset();
  }

  task<> after_failed_accept(io_result failed) {
    switch (common::classify_accept_errno(failed.error())) {
      case common::accept_failure::try_again:
      case common::accept_failure::nothing_waiting:
        break;
      case common::accept_failure::out_of_descriptors:
        // Until a client leaves, or for a while: another process may have used the last one.
        co_await sleep(accept_retry_ms, one_has_left_);
        break;
      case common::accept_failure::listener_broken:
        failed.or_throw("accept");
    }
  }

  // No new clients. After SHUT_RD what has arrived is readable, then EOF: each ends by itself. Who
  // does not read has some time, then comes SHUT_RDWR. What still waits after that is canceled.
  task<> stop_when_asked(int stop_fd) {
    const io_result asked = co_await poll_op(context_, stop_fd, POLLIN);
    stopping_ = true;
    if (!asked) co_return;  // the context is stopping: all is canceled already
    if (accepting_ != nullptr) context_.cancel(*accepting_);
    end_sleep(one_has_left_);
    static constexpr std::array<int, 2> how_to_shut_down{SHUT_RD, SHUT_RDWR};
    for (const int how : how_to_shut_down) {
      for (const int client : clients_) ::shutdown(client, how);
      if (!clients_.empty()) co_await sleep(stop_grace_ms, all_have_left_);
    }
    context_.stop();
  }

  void leave(common::unique_fd& socket) {
    clients_.erase(socket.get());
    socket.reset();
    if (context_.is_stopping()) return;  // nobody sleeps any more
    end_sleep(one_has_left_);
    if (clients_.empty()) end_sleep(all_have_left_);
  }

  // Waits for `at_most`, or until somebody calls end_sleep() with the same `sleeper`.
  task<> sleep(std::chrono::milliseconds at_most, const io_operation*& sleeper) {
    io_awaitable timeout{timeout_op(context_, at_most)};
    sleeper = &timeout;
    (void)co_await timeout;  // over, or canceled: either way it is time
    sleeper = nullptr;
  }

  void end_sleep(const io_operation*& sleeper) {
    if (sleeper != nullptr) context_.cancel(*std::exchange(sleeper, nullptr));
  }

  common::unique_fd listener_;
  std::unordered_set<int> clients_;
  bool stopping_ = false;
  const io_operation* accepting_ = nullptr;
  const io_operation* one_has_left_ = nullptr;   // the sleep that ends when a client leaves
  const io_operation* all_have_left_ = nullptr;  // the sleep that ends when the last has left
  io_context context_;  // last: its destructor ends the tasks, which use all of the above
};

}  // namespace uring
