// SPDX-License-Identifier: MIT
// Ends the test program, with the usual cause, when a test still runs after some seconds: code that
// blocks the only thread leaves nobody else to say so.
// Owns     the process's SIGALRM and its alarm; one guard at a time.
// Lifetime from the start of what may block to its end.
// Threads  any.
// Errors   exit code 1 and the sentence on stderr.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <string_view>

#include "patience.hpp"

namespace course_test {

class hang_guard {
 public:
  explicit hang_guard(std::string_view cause, unsigned limit_s = 10) {
    cause_ = cause;
    ::signal(SIGALRM, &give_up);
    ::alarm(limit_s * static_cast<unsigned>(patience()));
  }
  hang_guard(hang_guard&&) = delete;
  ~hang_guard() { ::alarm(0); }

 private:
  static void give_up(int) {
    constexpr std::string_view prefix = "the test hangs: ";
    [[maybe_unused]] auto written = ::write(STDERR_FILENO, prefix.data(), prefix.size());
    written = ::write(STDERR_FILENO, cause_.data(), cause_.size());
    written = ::write(STDERR_FILENO, "\n", 1);
    ::_exit(1);
  }

  static inline std::string_view cause_;
};

}  // namespace course_test
