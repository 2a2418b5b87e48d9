// SPDX-License-Identifier: MIT
// Tasks that transfer all bytes: after a short operation the next one goes on with the rest.
// Lifetime the queue, the descriptor and the bytes must live until the task has ended.
// Threads  the one that runs the queue.
// Errors   std::system_error that begins with what was tried.
// Rule     a descriptor may have only one of these tasks at a time, or their bytes mix.
#pragma once

#include <poll.h>

#include <cerrno>
#include <cstddef>
#include <span>

#include "file_operations.hpp"
#include "operations.hpp"
#include "task.hpp"

namespace uring {

// Writes to a file, a pipe or a terminal, from its current position on.
inline task<> write_all(io_handle io, int fd, std::span<const std::byte> data) {
  while (!data.empty()) {
    const io_result written = co_await write_op(io, fd, data);
    if (written.error() == EAGAIN) {  // another process has made it non-blocking: wait for room
      const io_result writable = co_await poll_op(io, fd, POLLOUT);
      writable.or_throw("poll");
    } else if (!written.is_passing()) {
      data = data.subspan(written.or_throw("write"));
    }
  }
}

// Sends to a socket.
inline task<> send_all(io_handle io, int socket, std::span<const std::byte> data) {
  while (!data.empty()) {
    const io_result sent = co_await send_op(io, socket, data);
    if (!sent.is_passing()) data = data.subspan(sent.or_throw("send"));
  }
}

}  // namespace uring
