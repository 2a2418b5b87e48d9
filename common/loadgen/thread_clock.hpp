// SPDX-License-Identifier: MIT
// What a thread did with its time: CPU used, and time it spent ready but without a CPU.
// Threads  it describes the thread that calls it.
// Errors   std::system_error from getrusage; without /proc/thread-self/schedstat waiting_s is 0.
// Rule     meaningful as a difference of two readings.
// See      getrusage(2), "Documentation/scheduler/sched-stats.rst" in the kernel's sources
#pragma once

namespace loadgen {

struct thread_times {
  double user_s = 0;
  double sys_s = 0;
  double waiting_s = 0;  // ready to run, but another thread had the CPU

  [[nodiscard]] double running_s() const noexcept { return user_s + sys_s; }
  [[nodiscard]] double ready_s() const noexcept { return running_s() + waiting_s; }

  thread_times& operator+=(const thread_times& other) noexcept {
    user_s += other.user_s;
    sys_s += other.sys_s;
    waiting_s += other.waiting_s;
    return *this;
  }
  friend thread_times operator-(const thread_times& to, const thread_times& from) noexcept {
    return {to.user_s - from.user_s, to.sys_s - from.sys_s, to.waiting_s - from.waiting_s};
  }
};

[[nodiscard]] thread_times read_thread_times();

}  // namespace loadgen
