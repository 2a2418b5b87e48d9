// SPDX-License-Identifier: MIT
// Blocks a thread until arrive() has been called `count` times, on any threads.
// Owns     a mutex and a condition variable.
// Lifetime it may be destroyed as soon as wait() has returned.
// Threads  arrive(): any. wait(): any.
// Rule     notify under the mutex: once it is unlocked, the waiter may destroy this object. (A
//          std::latch shows its new count before it notifies, so it may be destroyed in between.)
#pragma once

#include <cassert>
#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace uring {

class countdown {
 public:
  explicit countdown(std::size_t count) noexcept : left_{count} {}
  countdown(countdown&&) = delete;  // others hold its address

  void arrive() noexcept {
    const std::lock_guard lock{mutex_};
    assert(left_ > 0 && "more arrivals than were waited for");
    if (--left_ == 0) reached_zero_.notify_all();
  }

  void wait() {
    std::unique_lock lock{mutex_};
    reached_zero_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable reached_zero_;
  std::size_t left_;
};

}  // namespace uring
