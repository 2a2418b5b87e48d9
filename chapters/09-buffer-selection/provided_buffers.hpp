// SPDX-License-Identifier: MIT
// Gives each buffer to the kernel by a request, as programs did before the kernel had buffer rings.
// Owns     nothing; the kernel keeps a list of what it was given.
// Lifetime the queue must outlive it, and so must every buffer that was given.
// Threads  the one that runs the queue.
// Errors   std::system_error out of the queue's turn() if the kernel has no memory for its list.
// Rule     each buffer that is given costs a request and a completion. A buffer ring saves both,
//          and chapter 09 counts them.
// See      io_uring_prep_provide_buffers(3)
#pragma once

#include <liburing.h>

#include <cstddef>
#include <span>

#include "buffer_supply.hpp"
#include "errors.hpp"
#include "io_operation.hpp"
#include "io_queue.hpp"

namespace uring {

class provided_buffers final : public buffer_supply {
 public:
  provided_buffers(io_queue& queue, buffer_group group) noexcept : queue_{queue}, group_{group} {}

  [[nodiscard]] buffer_group group() const noexcept override { return group_; }

  void give(buffer_id id, std::span<std::byte> bytes) override {
    queue_.start(provided_, [&](::io_uring_sqe& sqe) {
      ::io_uring_prep_provide_buffers(&sqe, bytes.data(), static_cast<int>(bytes.size()), 1, group_,
                                      id);
    });
  }

 private:
  static void on_provided(io_operation&, const completion& done) {
    if (done.res < 0) common::throw_error(done.res, "IORING_OP_PROVIDE_BUFFERS");
  }

  io_queue& queue_;
  buffer_group group_;
  // One for all requests, because on_provided() needs only the res. It is static because the last
  // request may complete when its object is gone.
  static inline io_operation provided_{&on_provided};
};

}  // namespace uring
