// SPDX-License-Identifier: MIT
// Waits until something becomes true: for what a test can observe but not be told of.
// Errors   false at the deadline, so that the caller's CHECK says what did not happen.
#pragma once

#include <chrono>
#include <thread>

namespace course_test {

// CHECK(eventually(2s, [&] { return server.open_fd_count() == before; })).
template <typename Predicate>
[[nodiscard]] bool eventually(std::chrono::milliseconds deadline, Predicate&& predicate) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!predicate()) {
    if (std::chrono::steady_clock::now() >= end) return predicate();
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  return true;
}

}  // namespace course_test
