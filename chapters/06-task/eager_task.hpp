// SPDX-License-Identifier: MIT
// The task that many people write first: it starts immediately, and resumes the coroutine that
// waits for it. It has three defects that task.hpp avoids. The page shows two of them, and asks the
// reader to find the third.
// Owns     the coroutine's frame, which by default is also destroyed at the body's end.
// Lifetime that of the frame.
// Threads  one.
// Errors   none are kept: an exception ends the process.
// Rule     do not use it.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace naive {

// AtEnd decides what happens to the frame when the body has ended: with suspend_never it is
// destroyed, with suspend_always it stays.
template <typename AtEnd = std::suspend_never>
class eager_task {
 public:
  struct promise_type;

  explicit eager_task(std::coroutine_handle<promise_type> frame) noexcept : frame_{frame} {}
  eager_task(eager_task&& other) noexcept : frame_{std::exchange(other.frame_, nullptr)} {}
  ~eager_task() {
    if (frame_) frame_.destroy();
  }

  struct promise_type {
    eager_task get_return_object() noexcept {
      return eager_task{std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_never initial_suspend() const noexcept { return {}; }  // start at once
    AtEnd final_suspend() const noexcept { return {}; }                 // at first: suspend_never
    void return_value(int value) noexcept {
      result = value;
      has_ended = true;
      if (continuation) continuation.resume();
    }
    void unhandled_exception() const noexcept { std::terminate(); }

    int result = 0;
    bool has_ended = false;
    std::coroutine_handle<> continuation;
  };

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) const {
    if (frame_.promise().has_ended) return awaiting.resume();  // nothing to wait for
    frame_.promise().continuation = awaiting;
  }
  int await_resume() const noexcept { return frame_.promise().result; }

 private:
  std::coroutine_handle<promise_type> frame_;
};

}  // namespace naive
