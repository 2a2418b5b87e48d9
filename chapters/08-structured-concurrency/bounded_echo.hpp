// SPDX-License-Identifier: MIT
// An echo in which a deadline or a cancel can end every wait. One object serves all clients.
// Owns     nothing; each task of run() has a buffer in its frame.
// Lifetime it must outlive the tasks that run() returns, and the sources must outlive it.
// Threads  the one that runs the context.
// Errors   std::system_error from the ring; how a connection ends concerns that client only.
// Rule     a client is idle when it has sent nothing and taken nothing for idle_timeout.
// See      tcp(7), SIOCOUTQ
#pragma once

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>

#include "cancel_source.hpp"
#include "deadline.hpp"
#include "errors.hpp"
#include "operations.hpp"
#include "task.hpp"

namespace uring {

class bounded_echo {
 public:
  static constexpr std::size_t buffer_bytes = 4096;

  // A cancel of `waiting` ends waits for bytes; a cancel of `given_up` also ends waits to send.
  bounded_echo(std::optional<std::chrono::nanoseconds> idle_timeout, cancel_source& waiting,
               cancel_source& given_up) noexcept
      : idle_timeout_{idle_timeout}, waiting_{waiting}, given_up_{given_up} {}

  task<> run(int socket) {
    std::array<std::byte, buffer_bytes> buffer;
    while (!given_up_.is_canceled()) {
      const io_result received = co_await receive(socket, buffer);
      if (received.is_passing()) continue;
      if (!received || received.count() == 0) co_return;
      std::span<const std::byte> unsent = std::span{buffer}.first(received.count());
      while (!unsent.empty()) {
        const io_result sent = co_await send(socket, unsent);
        if (sent.is_passing()) continue;
        if (!sent) co_return;
        unsent = unsent.subspan(sent.count());
      }
    }
  }

 private:
  // Receives bytes that come in time. After a cancel of waiting_, it receives only bytes that have
  // arrived, and then 0. A client that still takes its echo is not idle, and gets more time.
  task<io_result> receive(int socket, std::span<std::byte> into) {
    std::optional<int> before;
    for (;;) {
      const io_result received =
          co_await with_deadline(recv_op(waiting_, socket, into), idle_timeout_);
      if (received.error() == ECANCELED) break;
      if (received.error() != ETIME) co_return received;
      const int now = bytes_not_taken(socket);
      if (before.has_value() ? now >= *before : now == 0) co_return received;
      before = now;
    }
    const io_result there = co_await recv_op(given_up_, socket, into, MSG_DONTWAIT);
    co_return there.error() == EAGAIN ? io_result{0} : there;
  }

  // Sends some of `data`. The result is -ETIME if the client has taken nothing for idle_timeout.
  // Nearly every send completes immediately, and then needs no deadline.
  task<io_result> send(int socket, std::span<const std::byte> data) {
    const io_result at_once =
        co_await send_op(given_up_, socket, data, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (at_once.error() != EAGAIN) co_return at_once;
    for (;;) {
      const int before = bytes_not_taken(socket);
      const io_result sent =
          co_await with_deadline(send_op(given_up_, socket, data), idle_timeout_);
      if (sent.error() != ETIME || bytes_not_taken(socket) >= before) co_return sent;
    }
  }

  // How many bytes the client's kernel has not acknowledged. A socket becomes writable only when a
  // third of its buffer is free; until then this number tells a slow reader from one that stopped.
  static int bytes_not_taken(int socket) {
    int bytes = 0;
    common::check(::ioctl(socket, SIOCOUTQ, &bytes), "ioctl(SIOCOUTQ)");
    return bytes;
  }

  std::optional<std::chrono::nanoseconds> idle_timeout_;
  cancel_source& waiting_;
  cancel_source& given_up_;
};

}  // namespace uring
