// SPDX-License-Identifier: MIT
// Ends a test whose loop does not end, and says what that usually means.
// Owns     the thread that waits.
// Lifetime the test case's.
// Threads  one of its own.
// Errors   at the deadline it prints and ends the process: a loop that hangs returns to nobody.
#pragma once

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "patience.hpp"

namespace course_test {

class [[nodiscard]] watchdog {
 public:
  watchdog(std::chrono::milliseconds deadline, std::string cause)
      : thread_{[deadline = deadline * patience(),
                 cause = std::move(cause)](const std::stop_token& called_off) {
          std::mutex mutex;
          std::unique_lock lock{mutex};
          std::condition_variable_any changed;
          changed.wait_for(lock, called_off, deadline, [] { return false; });
          if (called_off.stop_requested()) return;
          // Not on stderr: that may be a log just now (logged_by.hpp).
          std::printf("still not done after %lld ms: %s\n",
                      static_cast<long long>(deadline.count()), cause.c_str());
          std::fflush(stdout);
          ::_exit(1);
        }} {}

 private:
  std::jthread thread_;
};

}  // namespace course_test
