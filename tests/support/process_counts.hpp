// SPDX-License-Identifier: MIT
// What a process holds and what it has used, from /proc: for tests that count before and after.
// Threads  any; each number is a snapshot.
// Errors   std::runtime_error if the process is gone.
// See      proc(5), clock_getcpuclockid(3)
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace course_test {

[[nodiscard]] std::size_t open_fd_count(::pid_t pid = ::getpid());
[[nodiscard]] std::map<int, std::string> open_fds(::pid_t pid = ::getpid());  // 7: "socket:[123]"
[[nodiscard]] std::size_t resident_bytes(::pid_t pid = ::getpid());
[[nodiscard]] std::vector<::pid_t> thread_ids(::pid_t pid);  // the main thread's is pid
[[nodiscard]] std::size_t thread_count(::pid_t pid = ::getpid());

// User and system time of all its threads, those that have ended included; exact, not in ticks.
[[nodiscard]] std::chrono::microseconds cpu_time(::pid_t pid = ::getpid());

// Voluntary and involuntary, summed over the threads that exist now.
[[nodiscard]] std::size_t context_switches(::pid_t pid = ::getpid());

// 'R' runs, 'S' sleeps, 'T' was stopped by a signal, 'X' has ended; of the main thread, or of the
// thread with that number. See proc(5).
[[nodiscard]] char process_state(::pid_t pid);

// Sent to the process and not delivered yet: a second one now would be lost in the first.
[[nodiscard]] bool signal_pending(::pid_t pid, int signal);

// The thread with that number does not take it: another one of its process has to.
[[nodiscard]] bool signal_blocked(::pid_t thread, int signal);

// The process has a handler for it.
[[nodiscard]] bool signal_caught(::pid_t pid, int signal);

}  // namespace course_test
