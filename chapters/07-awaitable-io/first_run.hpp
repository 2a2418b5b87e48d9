// SPDX-License-Identifier: MIT
// Runs new coroutines up to their first wait. If a task starts a task, which starts another, the
// calls nest. Beyond nested_starts_max the outermost call runs the coroutines, to bound the stack.
// Owns     nothing; it holds the handles of frames that have not run yet.
// Lifetime call cancel_first_run() before you destroy a frame that has not run yet.
// Threads  any; each thread has its own depth and its own list.
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <new>
#include <vector>

namespace uring {

inline constexpr int nested_starts_max = 100;

// The coroutines that the outermost run_to_first_wait() will run, in the order of their starts.
class late_starts {
 public:
  [[nodiscard]] bool empty() const noexcept { return taken_ == handles_.size(); }

  void push_back(std::coroutine_handle<> started) { handles_.push_back(started); }

  // Erasing each handle alone would move all others each time, so this waits until half are taken.
  std::coroutine_handle<> pop_front() noexcept {
    const std::coroutine_handle<> first = handles_[taken_++];
    if (2 * taken_ >= handles_.size()) {
      handles_.erase(handles_.begin(), first_waiting());
      taken_ = 0;
    }
    return first;
  }

  void remove(std::coroutine_handle<> one) noexcept {
    handles_.erase(std::remove(first_waiting(), handles_.end(), one), handles_.end());
  }

 private:
  [[nodiscard]] std::vector<std::coroutine_handle<>>::iterator first_waiting() noexcept {
    return handles_.begin() + static_cast<std::ptrdiff_t>(taken_);
  }

  std::vector<std::coroutine_handle<>> handles_;
  std::size_t taken_ = 0;  // how many were taken from the front
};

// The list of this thread.
[[nodiscard]] inline late_starts& late_starts_here() noexcept {
  static thread_local late_starts late;
  return late;
}

// Returns false if the list gets no memory. Then the coroutine starts immediately, one call deeper.
[[nodiscard]] inline bool leave_to_outermost(std::coroutine_handle<> started) noexcept {
  try {
    late_starts_here().push_back(started);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

inline void run_to_first_wait(std::coroutine_handle<> started) {
  static thread_local int nesting = 0;
  if (nesting >= nested_starts_max && leave_to_outermost(started)) return;
  ++nesting;
  started.resume();
  while (nesting == 1 && !late_starts_here().empty()) late_starts_here().pop_front().resume();
  --nesting;
}

inline void cancel_first_run(std::coroutine_handle<> of) noexcept {
  late_starts_here().remove(of);
}

}  // namespace uring
