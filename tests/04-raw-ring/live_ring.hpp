// SPDX-License-Identifier: MIT
// A ring with a kernel behind it, and what tests put into one.
// Owns     the ring.
// Lifetime what an SQE points at outlives it: declare buffers before it.
// Threads  one.
// Errors   SKIP where this machine has no io_uring.
#pragma once

#include <linux/time_types.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdint>

#include "feature.hpp"
#include "raw_ring.hpp"
#include "ring_memory.hpp"

namespace course_test {

class live_ring {
 public:
  explicit live_ring(unsigned entries) : live_ring{entries, (require_feature("raw_ring"), 0)} {}

  [[nodiscard]] uring::raw_ring& operator*() noexcept { return ring_; }
  [[nodiscard]] uring::raw_ring* operator->() noexcept { return &ring_; }
  [[nodiscard]] const uring::ring_memory& memory() const noexcept { return memory_; }

  void add_nop(std::uint64_t user_data) {
    ::io_uring_sqe* const sqe = ring_.try_get_sqe();
    REQUIRE(sqe != nullptr);
    sqe->opcode = IORING_OP_NOP;
    sqe->user_data = user_data;
  }

  // A read that completes when somebody writes.
  void add_read(int fd, void* buffer, unsigned bytes, std::uint64_t user_data) {
    ::io_uring_sqe* const sqe = ring_.try_get_sqe();
    REQUIRE(sqe != nullptr);
    sqe->opcode = IORING_OP_READ;
    sqe->fd = fd;
    sqe->addr = reinterpret_cast<std::uint64_t>(buffer);
    sqe->len = bytes;
    sqe->off = static_cast<std::uint64_t>(-1);
    sqe->user_data = user_data;
  }

  // A timer that completes when `after` has passed.
  void add_timeout(const ::__kernel_timespec& after, std::uint64_t user_data) {
    ::io_uring_sqe* const sqe = ring_.try_get_sqe();
    REQUIRE(sqe != nullptr);
    sqe->opcode = IORING_OP_TIMEOUT;
    sqe->addr = reinterpret_cast<std::uint64_t>(&after);
    sqe->len = 1;
    sqe->user_data = user_data;
  }

  // CQEs that lie in the ring, by the kernel's own index.
  [[nodiscard]] std::uint32_t completed() const {
    const uring::completion_view cq = memory_.view().cq;
    return std::atomic_ref{*cq.tail}.load(std::memory_order_acquire) - *cq.head;
  }

 private:
  live_ring(unsigned entries, int /*the feature was required*/) : memory_{entries} {}

  uring::ring_memory memory_;
  uring::raw_ring ring_{memory_.view()};
};

}  // namespace course_test
