// SPDX-License-Identifier: MIT
// Buffers whose pages the kernel keeps in memory, so that it need not look them up again for each
// read_fixed_op and write_fixed_op.
// Owns     the registration; a queue has at most one. The caller owns the bytes.
// Lifetime bytes and queue must outlive it. No fixed operation may be in flight at its end.
// Threads  the one that runs the queue.
// Errors   std::system_error: ENOMEM beyond RLIMIT_MEMLOCK, EBUSY if the queue has some already.
// See      io_uring_register_buffers(3)
#pragma once

#include <liburing.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <vector>

#include "errors.hpp"
#include "io_queue.hpp"

namespace uring {

// Bytes within a registered buffer, and that buffer's index. They need not be the whole buffer.
struct fixed_buffer {
  std::span<std::byte> bytes;
  int index;
};

class registered_buffers {
 public:
  registered_buffers(io_queue& queue, std::span<const std::span<std::byte>> buffers)
      : queue_{queue} {
    for (const std::span<std::byte>& each : buffers) {
      buffers_.push_back({.iov_base = each.data(), .iov_len = each.size()});
    }
    const int result = ::io_uring_register_buffers(&queue.handle(), buffers_.data(),
                                                   static_cast<unsigned>(buffers_.size()));
    if (result < 0) common::throw_error(result, "io_uring_register_buffers");
  }
  registered_buffers(registered_buffers&&) = delete;
  ~registered_buffers() { ::io_uring_unregister_buffers(&queue_.handle()); }

  [[nodiscard]] std::size_t size() const noexcept { return buffers_.size(); }

  [[nodiscard]] fixed_buffer operator[](std::size_t index) const noexcept {
    const ::iovec& whole = buffers_[index];
    return {.bytes = {static_cast<std::byte*>(whole.iov_base), whole.iov_len},
            .index = static_cast<int>(index)};
  }

 private:
  io_queue& queue_;
  std::vector<::iovec> buffers_;
};

}  // namespace uring
