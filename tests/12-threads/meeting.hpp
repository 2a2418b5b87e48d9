// SPDX-License-Identifier: MIT
// Threads that have to be in one place at the same time.
// Threads  any.
// Rule     nobody waits forever: after a while one that is missing is not waited for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "patience.hpp"

namespace course_test {

class meeting {
 public:
  explicit meeting(std::size_t expected) : expected_{expected} {}
  meeting(meeting&&) = delete;

  // True if all have come while this one was here.
  [[nodiscard]] bool attend() {
    std::unique_lock lock{mutex_};
    ++here_;
    changed_.notify_all();
    const auto at_most = std::chrono::seconds{3} * patience();
    return changed_.wait_for(lock, at_most, [this] { return here_ >= expected_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t expected_;
  std::size_t here_ = 0;
};

}  // namespace course_test
