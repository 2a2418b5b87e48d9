// SPDX-License-Identifier: MIT
// An echo server of coroutines: one for each client, one that accepts clients, one for the stop.
// Owns     the listener, the context, and with it every task.
// Lifetime run() returns after a stop was requested, when all tasks have ended.
// Threads  only the thread that made it may call run().
// Errors   std::system_error if the ring or listener fails; a client's error ends its connection.
// Rule     a client has one operation in flight, a recv or a send. Its buffer is a local variable
//          of its coroutine.
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

// Sends back the bytes that come, until EOF (a count of 0). Await recv_op() into `buffer`. Then
// await send_op() until all bytes that came are sent: after a short send, send the rest. Then
// receive again. If a result is_passing(), make the same request again. After any other error,
// co_return: this client is lost, and no other client is affected.
inline task<> echo_until_eof(io_handle io, int socket) {
  std::array<std::byte, echo_buffer_bytes> buffer;
  // --8<-- [start:task-07-6]
  while (true) {
    const io_result received = co_await recv_op(io, socket, buffer);
    if (received.is_passing()) continue;
    if (!received || received.count() == 0) co_return;
    std::span<const std::byte> unsent = std::span{buffer}.first(received.count());
    while (!unsent.empty()) {
      const io_result sent = co_await send_op(io, socket, unsent);
      if (sent.is_passing()) continue;
      if (!sent) co_return;
      unsent = unsent.subspan(sent.count());
    }
  }
  // --8<-- [end:task-07-6]
}

class echo_server {
 public:
  static constexpr std::chrono::milliseconds stop_grace_ms{1000};
  static constexpr std::chrono::milliseconds accept_retry_ms{1000};

  // `listener` must be blocking, as all sockets are here.
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

  // Accepts clients and spawns a serve() for each, until a stop or until no descriptor is left.
  task<> accept_clients() {
    is_accepting_ = true;
    const scope_exit ended{[this] { is_accepting_ = false; }};
    while (!is_stopping_) {
      const std::size_t left_before = left_;
      const io_result accepted = co_await accept_op(context_, listener_.get());
      common::unique_fd client{accepted.fd()};  // a negative number closes nothing
      if (is_stopping_) break;
      if (client.valid()) {
        context_.spawn(serve(std::move(client)));
        continue;
      }
      switch (common::classify_accept_errno(accepted.error())) {
        case common::accept_failure::try_again:
        case common::accept_failure::nothing_waiting:
          break;
        case common::accept_failure::out_of_descriptors:
          if (left_ != left_before) break;  // a client has left since
          if (!retry_is_due_) context_.spawn(accept_again_later());
          co_return;  // the next client to leave starts this again
        case common::accept_failure::listener_broken:
          accepted.or_throw("accept");
      }
    }
  }

  void accept_again() {
    const bool stops = is_stopping_ || context_.is_stopping();
    if (!is_accepting_ && !stops) context_.spawn(accept_clients());
  }

  // Waiting for a client to leave is not enough, because another process may have the descriptors.
  task<> accept_again_later() {
    retry_is_due_ = true;
    (void)co_await timeout_op(context_, accept_retry_ms);
    retry_is_due_ = false;
    accept_again();
  }

  // First, shutdown(2) ends the accept that waits, so that no new clients come. After SHUT_RD a
  // client's coroutine still receives the bytes that have arrived, and then EOF, so it ends by
  // itself. After a while SHUT_RDWR cuts off clients that go on sending or do not read their echo.
  // Operations that still wait after that are canceled.
  task<> stop_when_asked(int stop_fd) {
    const io_result asked = co_await poll_op(context_, stop_fd, POLLIN);
    is_stopping_ = true;
    if (!asked) co_return;  // the context is stopping, and has canceled everything
    ::shutdown(listener_.get(), SHUT_RDWR);
    static constexpr std::array<int, 2> how_to_shut_down{SHUT_RD, SHUT_RDWR};
    for (const int how : how_to_shut_down) {
      if (clients_.empty()) break;
      for (const int client : clients_) ::shutdown(client, how);
      (void)co_await timeout_op(context_, stop_grace_ms);  // canceled when the last client has left
    }
    context_.stop();
  }

  void leave(common::unique_fd& socket) {
    clients_.erase(socket.get());
    socket.reset();
    ++left_;
    if (is_stopping_ && clients_.empty()) context_.stop();
    accept_again();
  }

  common::unique_fd listener_;
  std::unordered_set<int> clients_;
  std::size_t left_ = 0;  // how many clients have left
  bool is_accepting_ = false;
  bool is_stopping_ = false;
  bool retry_is_due_ = false;
  io_context context_;  // last: its destructor ends the tasks, which use all of the above
};

}  // namespace uring
