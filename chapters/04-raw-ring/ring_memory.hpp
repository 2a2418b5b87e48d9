// SPDX-License-Identifier: MIT
// A ring, and the memory that we and the kernel share for it.
// Owns     the ring's descriptor and two or three mappings.
// Lifetime it must outlive every ring_view, because a view points into this memory.
// Threads  this class has no rule; the comment at each pointer of a view says which side writes.
// Errors   the constructors throw refused, or std::system_error if a mapping fails.
// Rule     take all sizes and offsets from the kernel's answer in io_uring_params, because the
//          kernel may round up the sizes, and it decides where each part lies in the mappings.
// See      io_uring_setup(2), io_uring(7)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "mmap_region.hpp"
#include "refused.hpp"
#include "ring_abi.hpp"
#include "system_calls.hpp"
#include "todo.hpp"
#include "unique_fd.hpp"

namespace uring {

// Where the submission queue is. Indices only grow, and wrap at 2^32; `index & mask` is a slot.
struct submission_view {
  std::uint32_t* head = nullptr;   // the kernel writes: the entries before it were taken
  std::uint32_t* tail = nullptr;   // we write: the entries before it may be taken
  std::uint32_t* flags = nullptr;  // the kernel writes: IORING_SQ_CQ_OVERFLOW and others
  std::uint32_t* array = nullptr;  // we write: the number of the SQE in each slot
  ::io_uring_sqe* sqes = nullptr;  // we write
  std::uint32_t mask = 0;          // entries - 1; entries is a power of two
  std::uint32_t entries = 0;
};

// Where the completion queue is.
struct completion_view {
  std::uint32_t* head = nullptr;         // we write: the CQEs before it were reaped
  std::uint32_t* tail = nullptr;         // the kernel writes: the CQEs before it are complete
  const ::io_uring_cqe* cqes = nullptr;  // the kernel writes
  std::uint32_t mask = 0;
  std::uint32_t entries = 0;
};

struct ring_view {
  int fd = -1;
  submission_view sq;
  completion_view cq;
};

class ring_memory {
 public:
  // A ring for `entries` SQEs, rounded up to a power of two, and by default for twice as many CQEs.
  explicit ring_memory(unsigned entries, ::io_uring_params params = {})
      : ring_memory{create(entries, params), params} {}

  // For a ring that exists already; `answered` are its params as io_uring_setup filled them in.
  ring_memory(common::unique_fd ring, const ::io_uring_params& answered)
      : params_{answered}, fd_{std::move(ring)} {
    map();
  }

  ring_memory(ring_memory&&) = delete;  // views point into it

  [[nodiscard]] ring_view view() const noexcept {
    return {.fd = fd_.get(), .sq = submission(), .cq = completion()};
  }
  [[nodiscard]] const ::io_uring_params& params() const noexcept { return params_; }

  // Calls setup() for a ring as `params` describe it. The kernel writes its answer into the same
  // `params`. If the result is negative, throws refused{"io_uring_setup", result}. A result of 0 or
  // more is the ring's descriptor, which the returned unique_fd owns.
  static common::unique_fd create(unsigned entries, ::io_uring_params& params) {
    COURSE_TODO("04.1");
  }

 private:
  // Maps the SQ's ring into sq_, the CQ's ring into cq_ and the SQEs into sqes_, each with
  // mmap_region{descriptor, offset, bytes}. The offsets are IORING_OFF_SQ_RING, IORING_OFF_CQ_RING
  // and IORING_OFF_SQES. The sizes follow from params_. The SQ's ring ends with its array, which
  // begins at sq_off.array and has one std::uint32_t for each of sq_entries. The CQ's ring ends
  // with its CQEs, which begin at cq_off.cqes: cq_entries of them. The third mapping holds only
  // SQEs: sq_entries of them. If `features` has IORING_FEAT_SINGLE_MMAP, one mapping at the SQ's
  // offset holds both rings, and cq_ stays empty. You decide how large that mapping has to be.
  void map() {
    COURSE_TODO("04.1");
  }

  [[nodiscard]] submission_view submission() const noexcept {
    const ::io_sqring_offsets& offsets = params_.sq_off;
    return {.head = sq_.at<std::uint32_t>(offsets.head),
            .tail = sq_.at<std::uint32_t>(offsets.tail),
            .flags = sq_.at<std::uint32_t>(offsets.flags),
            .array = sq_.at<std::uint32_t>(offsets.array),
            .sqes = sqes_.at<::io_uring_sqe>(0),
            .mask = *sq_.at<std::uint32_t>(offsets.ring_mask),
            .entries = params_.sq_entries};
  }

  // Returns where the completion queue is. Its parts have their offsets in params_.cq_off. The
  // queue is in cq_, but if both queues share a mapping, it is in sq_, and cq_.valid() is false.
  [[nodiscard]] completion_view completion() const noexcept {
    COURSE_TODO("04.1");
  }

  ::io_uring_params params_;
  common::unique_fd fd_;
  mmap_region sq_;    // the SQ's head, tail, flags and array; often the CQ, too
  mmap_region cq_;    // the CQ, where it has its own mapping
  mmap_region sqes_;  // the SQEs
};

}  // namespace uring
