// SPDX-License-Identifier: MIT
// What the system does to a server and cannot be made to do at will: an accept that fails, a thread
// that is refused, a thread that is faster than its maker. In this program only: the linker puts
// functions of ours before the real ones (CMakeLists.txt).
// Owns     one switch each, for as long as the object lives; one of a kind at a time.
// Lifetime the switch is back when the destructor returns.
// Threads  any; the calls are whichever threads make them, the test's own too.
// Errors   none.
// See      accept(2), "Error handling"; pthread_create(3); ld(1), --wrap
#pragma once

#include <chrono>
#include <cstddef>
#include <limits>

namespace course_test {

// How many accepts the kernel was asked for, by every thread; the last of them may still sleep, and
// no script will touch it.
[[nodiscard]] std::size_t accepts_begun();

// The next accepts, of every thread and listener, fail with `error` before the kernel is asked.
class [[nodiscard]] failing_accepts {
 public:
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  explicit failing_accepts(int error, std::size_t failures_max = unlimited);
  failing_accepts(failing_accepts&&) = delete;
  ~failing_accepts();

  [[nodiscard]] std::size_t failures() const;  // so far
};

// std::thread's constructor throws, as when the system has no thread left: EAGAIN.
class [[nodiscard]] refused_threads {
 public:
  refused_threads();
  refused_threads(refused_threads&&) = delete;
  ~refused_threads();
};

// std::thread's constructor returns `later` than the thread has begun to run.
class [[nodiscard]] fast_threads {
 public:
  explicit fast_threads(std::chrono::milliseconds later);
  fast_threads(fast_threads&&) = delete;
  ~fast_threads();
};

}  // namespace course_test
