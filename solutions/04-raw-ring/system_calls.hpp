// SPDX-License-Identifier: MIT
// The three system calls of io_uring. They go through syscall(2), because glibc has no wrappers.
// Owns     nothing; the caller owns the descriptor that setup() returns.
// Lifetime the kernel uses the object behind a pointer during the call only.
// Errors   a failure comes back as -errno, like a CQE's res. -1 and errno do not leave this file.
// See      io_uring_setup(2), io_uring_enter(2), io_uring_register(2), syscall(2)
#pragma once

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "ring_abi.hpp"

namespace uring {

[[nodiscard]] inline int or_errno(long returned) noexcept {
  return returned == -1 ? -errno : static_cast<int>(returned);
}

// Returns a new ring's descriptor. The kernel writes sizes, offsets and features into `params`.
[[nodiscard]] inline int setup(unsigned entries, ::io_uring_params& params) noexcept {
  return or_errno(::syscall(__NR_io_uring_setup, entries, &params));
}

// Returns how many SQEs the kernel took, perhaps fewer than `to_submit`. With
// IORING_ENTER_GETEVENTS the call also waits until `wanted` CQEs are in the queue.
[[nodiscard]] inline int enter(int ring_fd, unsigned to_submit, unsigned wanted,
                               unsigned flags) noexcept {
  return or_errno(
      ::syscall(__NR_io_uring_enter, ring_fd, to_submit, wanted, flags, nullptr, std::size_t{0}));
}

// Returns 0 or more. The opcode decides what this number, `argument` and `count` mean.
[[nodiscard]] inline int register_with(int ring_fd, unsigned opcode, void* argument,
                                       unsigned count) noexcept {
  return or_errno(::syscall(__NR_io_uring_register, ring_fd, opcode, argument, count));
}

}  // namespace uring
