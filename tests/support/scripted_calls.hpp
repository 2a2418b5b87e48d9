// SPDX-License-Identifier: MIT
// Brings about what the system rarely does to a server: an accept that fails, a thread or memory
// that is refused, a thread that is faster or slower than its maker, an unlock that returns late.
// And shows what no client can see: the flags with which a server accepts, where it receives, how
// it waits, and what it does with its mutex held, or without it.
// The linker puts functions of ours before the real ones, in programs that link
// test-scripted-calls, and in no other.
// Owns     a switch, as long as the object lives. There may be one object of each kind at a time.
// Lifetime the destructor resets the switch.
// Threads  any; the calls of all threads count, the test's own included.
// See      accept(2), "Error handling"; pthread_create(3); ld(1), --wrap
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>

namespace course_test {

// How many accepts the kernel was asked for, by every thread; the last of them may still sleep, and
// no script will touch it.
[[nodiscard]] std::size_t accepts_begun();

// The flags of the last accept4() that was begun; 0 for accept().
[[nodiscard]] int last_accept_flags();

// The buffer of the last recv() that was begun, the test's own included.
[[nodiscard]] const void* last_recv_buffer();

// How many waits for a std::condition_variable, with a limit of time, have begun in every thread.
[[nodiscard]] std::size_t timed_waits_begun();

// The next accepts, of every thread and listener, fail with `error` before the kernel is asked.
class [[nodiscard]] failing_accepts {
 public:
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  explicit failing_accepts(int error, std::size_t failures_max = unlimited);
  failing_accepts(failing_accepts&&) = delete;
  ~failing_accepts();

  [[nodiscard]] std::size_t failures() const;  // so far
};

// std::thread's constructor throws, as when the system has no thread left: EAGAIN. The first
// `started` threads are still given out. `before` is called before each one that is refused.
class [[nodiscard]] refused_threads {
 public:
  explicit refused_threads(std::size_t started = 0, std::function<void()> before = {});
  refused_threads(refused_threads&&) = delete;
  ~refused_threads();
};

// The program's own code gets no memory from operator new, on this thread: std::bad_alloc.
class [[nodiscard]] refused_memory {
 public:
  refused_memory();
  refused_memory(refused_memory&&) = delete;
  ~refused_memory();
};

// Something happens `later` as long as one of the three below lives.
class scripted_delay {
 public:
  scripted_delay(scripted_delay&&) = delete;

 protected:
  using switch_ms = std::atomic<std::chrono::milliseconds>;

  scripted_delay(switch_ms& delay, std::chrono::milliseconds later) : delay_{delay} {
    delay_ = later;
  }
  ~scripted_delay() { delay_ = std::chrono::milliseconds{0}; }

 private:
  switch_ms& delay_;
};

// std::thread's constructor returns `later` than the thread has begun to run.
class [[nodiscard]] fast_threads : scripted_delay {
 public:
  explicit fast_threads(std::chrono::milliseconds later);
};

// std::thread's constructor returns, and the thread begins `later`.
class [[nodiscard]] late_threads : scripted_delay {
 public:
  explicit late_threads(std::chrono::milliseconds later);
};

// When a thread frees a mutex, others go on at once, and the thread itself `later`. The thread that
// made this is not delayed.
class [[nodiscard]] slow_unlocks : scripted_delay {
 public:
  explicit slow_unlocks(std::chrono::milliseconds later);
  slow_unlocks(slow_unlocks&&) = delete;
  ~slow_unlocks();
};

// std::thread's constructor returns, and the thread begins when release() is called.
class [[nodiscard]] held_threads {
 public:
  held_threads();
  held_threads(held_threads&&) = delete;
  ~held_threads() { release(); }

  void release();
};

// Counts what threads other than the one that made it do with a mutex held, or without one. A call
// is counted before it is made, so a client that sees its effect can rely on the count.
class [[nodiscard]] mutex_watch {
 public:
  mutex_watch();
  mutex_watch(mutex_watch&&) = delete;
  ~mutex_watch();

  [[nodiscard]] std::size_t closes_without() const;        // close(), which shuts down instead
  [[nodiscard]] std::size_t list_changes_without() const;  // an insert into a std::list, an erase
  [[nodiscard]] std::size_t receives_with() const;         // recv()
};

}  // namespace course_test
