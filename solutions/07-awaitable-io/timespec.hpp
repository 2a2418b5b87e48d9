// SPDX-License-Identifier: MIT
// A duration as the kernel takes it.
// Owns     nothing.
// Lifetime the kernel may read a timespec when the request is submitted, which is after the call
//          that prepares it: keep it where the request is.
// Threads  any.
// Errors   none; a negative duration is one of zero.
// See      io_uring_prep_timeout(3)
#pragma once

#include <liburing.h>

#include <algorithm>
#include <chrono>

namespace uring {

[[nodiscard]] inline ::__kernel_timespec to_timespec(std::chrono::nanoseconds duration) noexcept {
  const auto at_least_zero = std::max(duration, std::chrono::nanoseconds{0});
  const auto seconds = std::chrono::floor<std::chrono::seconds>(at_least_zero);
  return {.tv_sec = seconds.count(), .tv_nsec = (at_least_zero - seconds).count()};
}

}  // namespace uring
