// SPDX-License-Identifier: MIT
// One client of the ring server: its socket, its buffer, and what comes next.
// Owns     the socket and the buffer.
// Lifetime it must not move or end while its request is in flight, because the kernel uses the
//          buffer.
// Threads  the loop's thread.
// Errors   nothing throws: on_recv() and on_send() return next::close if the connection has failed.
// Rule     receive, then send all received bytes, then receive: one request in flight, one buffer.
//          While a client does not read its echoes, the server receives nothing from it.
// See      recv(2), send(2), io_uring_enter(2) for what `res` holds
#pragma once

#include <errno.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "todo.hpp"
#include "unique_fd.hpp"

namespace uring {

// The step that the loop must take next for a connection: submit a recv or a send, or close it.
enum class next { recv, send, close };

class ring_connection {
 public:
  static constexpr std::size_t buffer_bytes = 4096;

  explicit ring_connection(common::unique_fd socket) noexcept : socket_{std::move(socket)} {}
  ring_connection(ring_connection&&) = delete;  // the kernel holds the buffer's address

  // A recv has completed. The bytes that came are sent next. EOF and most failures close the
  // connection. After a passing failure (EINTR, EAGAIN) the recv is tried again.
  [[nodiscard]] next on_recv(std::int32_t res) {
    if (res == 0) return next::close;
    if (res < 0) return is_passing(res) ? next::recv : next::close;
    unsent_ = std::span{buffer_}.first(static_cast<std::size_t>(res));
    return next::send;
  }

  // A send has completed: `res` is the number of bytes of unsent_ that were sent, or -errno. If all
  // were sent, the next step is a recv. If some are left, the next step is a send of the rest, and
  // unsent_ must be that rest. After a failure that is_passing(), the same bytes are sent again.
  // After any other failure, the connection is closed.
  [[nodiscard]] next on_send(std::int32_t res) {
    if (std::cmp_equal(res, unsent_.size())) return next::recv;
    // --8<-- [start:task-05-3]
    if (res < 0) return is_passing(res) ? next::send : next::close;
    unsent_ = unsent_.subspan(static_cast<std::size_t>(res));
    return next::send;
    // --8<-- [end:task-05-3]
  }

  void shutdown(int how) const noexcept { ::shutdown(socket_.get(), how); }

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  [[nodiscard]] std::span<std::byte> free_space() noexcept { return buffer_; }
  [[nodiscard]] std::span<const std::byte> unsent() const noexcept { return unsent_; }

 private:
  // `res` is -errno. After EAGAIN or EINTR nothing has happened, so the request may be repeated.
  static bool is_passing(std::int32_t res) noexcept { return res == -EAGAIN || res == -EINTR; }

  common::unique_fd socket_;
  std::span<const std::byte> unsent_;  // a part of buffer_: the bytes that a send must still send
  std::array<std::byte, buffer_bytes> buffer_;
};

}  // namespace uring
