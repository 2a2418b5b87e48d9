// SPDX-License-Identifier: MIT
// A ring without a kernel: the test plays the kernel's part, from any index on.
// Owns     the memory of both queues.
// Lifetime longer than every raw_ring on its view().
// Rule     whatever a ring has to write first is garbage here, as it is in a kernel's old slots.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "ring_memory.hpp"

namespace course_test {

struct fake_ring {
  static constexpr std::uint32_t garbage = 0x0BADF00D;
  static constexpr std::uint32_t sq_entries = 4;
  static constexpr std::uint32_t cq_entries = 8;
  static constexpr std::uint32_t before_wrap = 0xFFFFFFFE;  // two more, and an index is 0 again

  explicit fake_ring(std::uint32_t first_index = 0)
      : sq_head{first_index}, sq_tail{first_index}, cq_head{first_index}, cq_tail{first_index} {
    for (::io_uring_sqe& sqe : sqes) std::memset(&sqe, 0xEE, sizeof sqe);
  }
  fake_ring(fake_ring&&) = delete;  // views point into it

  [[nodiscard]] uring::ring_view view() {
    return {.fd = -1,
            .sq = {.head = &sq_head,
                   .tail = &sq_tail,
                   .flags = &sq_flags,
                   .array = array.data(),
                   .sqes = sqes.data(),
                   .mask = sq_entries - 1,
                   .entries = sq_entries},
            .cq = {.head = &cq_head,
                   .tail = &cq_tail,
                   .cqes = cqes.data(),
                   .mask = cq_entries - 1,
                   .entries = cq_entries}};
  }

  // What the kernel does with the SQE at its head: finds it through the array, reads it, goes on.
  // Throws if the array names no SQE; a Catch2 macro would not do, as threads call this.
  ::io_uring_sqe take() {
    const std::uint32_t slot = array[sq_head % sq_entries];
    if (slot == garbage) {
      throw std::out_of_range{
          "this entry of the SQ array was not written: the slot of an index is index & mask"};
    }
    if (slot >= sq_entries) {
      throw std::out_of_range{"the SQ array holds a slot's number, not an index: " +
                              std::to_string(slot) + " is none of the 4 SQEs"};
    }
    const ::io_uring_sqe taken = sqes[slot];
    std::atomic_ref{sq_head}.store(sq_head + 1, std::memory_order_release);
    return taken;
  }

  void complete(std::uint64_t user_data, std::int32_t res, std::uint32_t flags = 0) {
    ::io_uring_cqe& cqe = cqes[cq_tail % cq_entries];
    cqe.user_data = user_data;
    cqe.res = res;
    cqe.flags = flags;
    std::atomic_ref{cq_tail}.store(cq_tail + 1, std::memory_order_release);
  }

  std::uint32_t sq_head;
  std::uint32_t sq_tail;
  std::uint32_t sq_flags = 0;
  std::uint32_t cq_head;
  std::uint32_t cq_tail;
  std::vector<std::uint32_t> array = std::vector<std::uint32_t>(sq_entries, garbage);
  std::vector<::io_uring_sqe> sqes = std::vector<::io_uring_sqe>(sq_entries);
  std::vector<::io_uring_cqe> cqes = std::vector<::io_uring_cqe>(cq_entries);
};

}  // namespace course_test
