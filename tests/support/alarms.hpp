// SPDX-License-Identifier: MIT
// SIGALRM again and again, without SA_RESTART: it interrupts a thread that waits in the kernel.
// Owns     the process's SIGALRM and its ITIMER_REAL; one object at a time.
// Lifetime alarms come as long as it lives; then the previous handler is restored.
// Threads  any; the kernel picks the one that is interrupted.
// Errors   std::system_error from the constructor.
#pragma once

#include <signal.h>
#include <sys/time.h>

#include <chrono>
#include <csignal>

#include "errors.hpp"

namespace course_test {

// const alarms ticking{5ms}; or, for a wait that should not happen: const alarms late{2s, 1s};
class [[nodiscard]] alarms {
 public:
  using microseconds = std::chrono::microseconds;

  explicit alarms(microseconds every) : alarms{every, every} {}
  alarms(microseconds first, microseconds every) {
    count_ = 0;
    struct ::sigaction action{};
    action.sa_handler = [](int) { count_ = count_ + 1; };
    common::check(::sigaction(SIGALRM, &action, &previous_), "sigaction SIGALRM");
    const ::itimerval timer{.it_interval = timeval_of(every), .it_value = timeval_of(first)};
    common::check(::setitimer(ITIMER_REAL, &timer, nullptr), "setitimer");
  }
  alarms(alarms&&) = delete;
  ~alarms() {
    const ::itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::signal(SIGALRM, SIG_IGN);  // one that is pending is dropped
    ::sigaction(SIGALRM, &previous_, nullptr);
  }

  [[nodiscard]] int count() const noexcept { return count_; }  // how many came so far

 private:
  static ::timeval timeval_of(microseconds time) {
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(time);
    return {.tv_sec = whole.count(), .tv_usec = (time - whole).count()};
  }

  static inline volatile std::sig_atomic_t count_ = 0;
  struct ::sigaction previous_{};
};

}  // namespace course_test
