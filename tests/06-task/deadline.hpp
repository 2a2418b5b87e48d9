// SPDX-License-Identifier: MIT
// Ends the program, by abort(), if a step of a test takes longer than it may: one that would wait
// forever is red soon, and Catch2 shows what INFO says of it.
// Owns     a thread.
// Lifetime the scope of the step.
// Threads  any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "patience.hpp"

namespace course_test {

class [[nodiscard]] deadline {
 public:
  explicit deadline(std::chrono::seconds at_most)
      : thread_{[this, at_most = at_most * patience()] { abort_after(at_most); }} {}
  deadline(deadline&&) = delete;
  ~deadline() {
    {
      const std::lock_guard lock{mutex_};
      is_kept_ = true;
      kept_.notify_one();
    }
    thread_.join();
  }

 private:
  void abort_after(std::chrono::seconds at_most) {
    std::unique_lock lock{mutex_};
    if (!kept_.wait_for(lock, at_most, [this] { return is_kept_; })) std::abort();
  }

  std::mutex mutex_;
  std::condition_variable kept_;
  bool is_kept_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace course_test
