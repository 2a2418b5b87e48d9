// SPDX-License-Identifier: MIT
// Mutual exclusion between coroutines. A coroutine that has to wait does not block its thread.
// Owns     the list of waiting coroutines; each wait lives in its coroutine's frame.
// Lifetime it must outlive every guard and every wait.
// Threads  the one that runs the queue. The mutex keeps other coroutines out while its holder waits
//          in a co_await; it does not protect memory from other threads.
// Errors   a guard's destructor terminates the program if the ring takes no more requests. A
//          canceled wait gives a guard that holds nothing.
// Rule     first come, first served. An unlock hands the lock to the next coroutine in line. The
//          loop resumes that coroutine, so that a thousand short holders do not nest their calls.
#pragma once

#include <cassert>
#include <utility>

#include "cancel_source.hpp"
#include "io_queue.hpp"
#include "waiting_line.hpp"

namespace uring {

class async_mutex {
 public:
  class guard;
  class waiting;

  explicit async_mutex(io_queue& queue) noexcept;
  async_mutex(async_mutex&&) = delete;  // guards and waits hold its address
  ~async_mutex();

  // const async_mutex::guard held = co_await mutex.lock();
  [[nodiscard]] waiting lock() noexcept;
  // The same, but a cancel of `source` ends the wait; then `held` is false.
  [[nodiscard]] waiting lock(cancel_source& source) noexcept;

 private:
  void unlock();

  bool locked_ = false;
  waiting_line<guard> line_;
};

class [[nodiscard]] async_mutex::guard {
 public:
  guard() noexcept = default;
  explicit guard(async_mutex& held) noexcept : held_{&held} {}
  guard(guard&& other) noexcept : held_{std::exchange(other.held_, nullptr)} {}
  guard& operator=(guard other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~guard() {
    if (held_ != nullptr) held_->unlock();
  }

  [[nodiscard]] explicit operator bool() const noexcept { return held_ != nullptr; }

 private:
  async_mutex* held_ = nullptr;
};

class [[nodiscard("it locks when it is awaited")]] async_mutex::waiting
    : public waiting_line<guard>::place {
 public:
  waiting(async_mutex& wanted, cancel_source* source) noexcept
      : place{wanted.line_, source}, wanted_{wanted} {}

  bool await_ready() noexcept {
    if (place::await_ready()) return true;
    if (wanted_.locked_) return false;
    wanted_.locked_ = true;
    set_given(guard{wanted_});
    return true;
  }

 private:
  async_mutex& wanted_;
};

inline async_mutex::async_mutex(io_queue& queue) noexcept : line_{queue} {}

inline async_mutex::~async_mutex() {
  assert(!locked_ && "a guard is still there");
}

inline async_mutex::waiting async_mutex::lock() noexcept {
  return waiting{*this, nullptr};
}

inline async_mutex::waiting async_mutex::lock(cancel_source& source) noexcept {
  return waiting{*this, &source};
}

inline void async_mutex::unlock() {
  if (!line_.empty()) return line_.give_to_first(guard{*this});
  locked_ = false;
}

}  // namespace uring
