// SPDX-License-Identifier: MIT
// Waits until something becomes true: for what a test can observe but not be told of.
// Errors   false at the deadline, so that the caller's CHECK says what did not happen.
#pragma once

#include <chrono>
#include <thread>

#include "patience.hpp"

namespace course_test {

// For what must not happen, or need not: on a slow machine, too, the wait is no longer than this.
// CHECK_FALSE(happens_within(300ms, [&] { return server.open_fd_count() > limit; })).
template <typename Predicate>
[[nodiscard]] bool happens_within(std::chrono::milliseconds duration, Predicate&& predicate) {
  const auto end = std::chrono::steady_clock::now() + duration;
  while (!predicate()) {
    if (std::chrono::steady_clock::now() >= end) return predicate();
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  return true;
}

// For what must happen: CHECK(eventually(2s, [&] { return server.open_fd_count() == before; })).
template <typename Predicate>
[[nodiscard]] bool eventually(std::chrono::milliseconds deadline, Predicate&& predicate) {
  return happens_within(deadline * patience(), predicate);
}

}  // namespace course_test
