// SPDX-License-Identifier: MIT
// An event that the test causes: a coroutine that awaits the gate waits until the test opens it.
// Owns     nothing; it holds the handle of a frame that waits.
// Lifetime it must live until it is opened, or the frame that waits has been destroyed.
// Threads  one at a time.
// Errors   what escapes the frame that goes on.
#pragma once

#include <coroutine>
#include <utility>

namespace course_test {

class gate {
 public:
  gate() = default;
  gate(gate&&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) noexcept { waiting_ = waiting; }
  void await_resume() const noexcept {}

  [[nodiscard]] bool somebody_waits() const noexcept { return waiting_ != nullptr; }
  void open() { std::exchange(waiting_, nullptr).resume(); }

 private:
  std::coroutine_handle<> waiting_;
};

}  // namespace course_test
