// SPDX-License-Identifier: MIT
// Makes threads wait until each of them is ready or has said that it cannot start.
// Owns     a mutex and a condition variable.
// Lifetime it must outlive every thread that arrives.
// Threads  any.
// Rule     the result is decided once, by the last thread to arrive, and is the same for all.
#pragma once

#include <cassert>
#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace uring {

class starting_line {
 public:
  explicit starting_line(std::size_t count) noexcept : missing_{count} {}
  starting_line(starting_line&&) = delete;  // threads hold its address

  // The calling thread is ready. Waits until all have arrived, and returns whether all are ready.
  [[nodiscard]] bool arrive_and_wait() {
    std::unique_lock lock{mutex_};
    one_has_arrived();
    decided_.wait(lock, [this] { return missing_ == 0; });
    return all_are_ready_;
  }

  // Call it for a thread that cannot start. The others need not wait for that thread.
  void give_up() noexcept {
    const std::lock_guard lock{mutex_};
    all_are_ready_ = false;
    one_has_arrived();
  }

 private:
  void one_has_arrived() noexcept {
    assert(missing_ > 0 && "a thread that has arrived must not give up as well");
    if (--missing_ == 0) decided_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable decided_;
  std::size_t missing_;
  bool all_are_ready_ = true;
};

}  // namespace uring
