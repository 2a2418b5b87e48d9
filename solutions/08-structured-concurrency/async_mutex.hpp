// SPDX-License-Identifier: MIT
// Mutual exclusion between coroutines: who waits for it suspends, and the thread goes on.
// Owns     the list of those who wait, which are in their frames.
// Lifetime it must outlive every guard and every wait.
// Threads  the one that runs the io_context: it guards what a coroutine does across several awaits,
//          not memory against another thread.
// Errors   unlocking terminates if the ring takes no more requests.
// Rule     first come, first served. Who unlocks hands the lock to the next in line, and the loop
//          resumes that one: a thousand short holders in a row are no thousand calls deep.
#pragma once

#include <liburing.h>

#include <cassert>
#include <coroutine>
#include <utility>

#include "io_context.hpp"
#include "io_operation.hpp"
#include "todo.hpp"

namespace uring {

class async_mutex {
 public:
  class guard;
  class waiting;

  explicit async_mutex(io_context& context) noexcept : context_{context} {}
  async_mutex(async_mutex&&) = delete;  // guards and waits hold its address
  ~async_mutex() { assert(!locked_ && "a guard is still there"); }

  // const async_mutex::guard held = co_await mutex.lock();
  [[nodiscard]] waiting lock() noexcept;

 private:
  void unlock();

  io_context& context_;
  bool locked_ = false;
  waiting* first_ = nullptr;
  waiting* last_ = nullptr;
};

class [[nodiscard]] async_mutex::guard {
 public:
  explicit guard(async_mutex& held) noexcept : held_{&held} {}
  guard(guard&& other) noexcept : held_{std::exchange(other.held_, nullptr)} {}
  ~guard() {
    if (held_ != nullptr) held_->unlock();
  }

 private:
  async_mutex* held_;
};

class [[nodiscard("it locks when it is awaited")]] async_mutex::waiting : io_operation {
 public:
  explicit waiting(async_mutex& wanted) noexcept
      : io_operation{[](io_operation& self, const completion&) {
          static_cast<waiting&>(self).awaiting_.resume();
        }},
        wanted_{wanted} {}

  bool await_ready() noexcept { return !std::exchange(wanted_.locked_, true); }
  void await_suspend(std::coroutine_handle<> awaiting) noexcept {
    awaiting_ = awaiting;
    (wanted_.last_ == nullptr ? wanted_.first_ : wanted_.last_->next_) = this;
    wanted_.last_ = this;
  }
  guard await_resume() noexcept { return guard{wanted_}; }

 private:
  friend class async_mutex;

  async_mutex& wanted_;
  std::coroutine_handle<> awaiting_;
  waiting* next_ = nullptr;
};

inline async_mutex::waiting async_mutex::lock() noexcept {
  return waiting{*this};
}

inline void async_mutex::unlock() {
  if (context_.is_destroying()) last_ = first_ = nullptr;  // whoever waits will not go on
  waiting* const next = first_;
  if (next == nullptr) {
    locked_ = false;
    return;
  }
  first_ = next->next_;
  if (first_ == nullptr) last_ = nullptr;
  context_.start(*next, [](::io_uring_sqe& sqe) { ::io_uring_prep_nop(&sqe); });
}

}  // namespace uring
