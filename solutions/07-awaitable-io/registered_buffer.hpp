// SPDX-License-Identifier: MIT
// A buffer whose pages the kernel keeps, so that read_fixed_op and write_fixed_op need not ask for
// them each time.
// Owns     the registration, one for each context; the bytes are the caller's.
// Lifetime bytes and context outlive it. No fixed operation may be in flight when it ends.
// Threads  the one that runs the context.
// Errors   std::system_error: ENOMEM beyond RLIMIT_MEMLOCK, EBUSY if the context has one already.
// See      io_uring_register_buffers(3)
#pragma once

#include <liburing.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "errors.hpp"
#include "io_context.hpp"

namespace uring {

class registered_buffer {
 public:
  static constexpr int index = 0;  // of the ring's table, which here has this one entry

  registered_buffer(io_context& context, std::span<std::byte> bytes) : context_{context} {
    const ::iovec whole{.iov_base = bytes.data(), .iov_len = bytes.size()};
    const int result = ::io_uring_register_buffers(&context.handle(), &whole, 1);
    if (result < 0) common::throw_error(result, "io_uring_register_buffers");
  }
  registered_buffer(registered_buffer&&) = delete;
  ~registered_buffer() { ::io_uring_unregister_buffers(&context_.handle()); }

 private:
  io_context& context_;
};

}  // namespace uring
