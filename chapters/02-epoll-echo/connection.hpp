// SPDX-License-Identifier: MIT
// One client of the epoll server: its socket, and the bytes that could not be sent to it yet.
// Owns     the socket, and at most one scratch buffer's worth of unsent bytes.
// Lifetime as long as its entry in the loop's table. When a call returns closed, the loop
//          erases this entry.
// Threads  the loop's thread.
// Errors   none thrown; when a connection fails, the call returns closed.
// Rule     while bytes are unsent we do not read, so TCP stops a client that does not read its
//          echoes, and that client takes no more memory than it has already.
// See      recv(2), send(2), epoll(7)
#pragma once

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "todo.hpp"
#include "unique_fd.hpp"

namespace epoll {

enum class state { open, closed };

class connection {
 public:
  // `socket` must be non-blocking, because the loop serves all other clients on the same thread.
  explicit connection(common::unique_fd socket) noexcept : socket_{std::move(socket)} {}

  // The socket can be read. Call recv() once, into `scratch`. Once is enough, because epoll reports
  // unread bytes again, and the other clients get their turn. Echo the received bytes with
  // send_or_keep(), and return its result. After EAGAIN, which means "not now", return open. At
  // EOF, and after any other error, return closed. Throw nothing, because an error such as
  // ETIMEDOUT must end one connection, and not the loop.
  [[nodiscard]] state on_readable(std::span<std::byte> scratch) {
    COURSE_TODO("02.2");
  }

  // The socket may have room again. Send the kept bytes with send_or_keep(), and return its result.
  // The bytes that still do not fit are kept again, even if not one byte fits.
  [[nodiscard]] state on_writable() {
    COURSE_TODO("02.3");
  }

  // The event that the loop should wait for: EPOLLOUT while bytes are unsent, else EPOLLIN.
  [[nodiscard]] std::uint32_t wanted_events() const noexcept {
    COURSE_TODO("02.3");
  }

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  [[nodiscard]] std::size_t unsent_bytes() const noexcept { return unsent_.size(); }

 private:
  // Sends as much of `data` as the socket takes now. Call send() with MSG_NOSIGNAL. After a short
  // send, send the bytes that are left. When none is left, return open. If send() fails with
  // EAGAIN, it took no byte. Then copy the bytes that are left into unsent_, and return open. After
  // any other error, return closed.
  state send_or_keep(std::span<const std::byte> data) {
    COURSE_TODO("02.2");
  }

  common::unique_fd socket_;
  std::vector<std::byte> unsent_;  // empty, and without capacity, while the client keeps up
};

}  // namespace epoll
