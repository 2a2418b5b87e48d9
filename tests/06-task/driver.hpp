// SPDX-License-Identifier: MIT
// Runs a task on this thread, as sync_wait() does, but without blocking: a test can look at a task
// that waits, and needs the code of no other exercise.
// Owns     the frame of an outermost coroutine; destroying a driver destroys what it awaits.
// Lifetime the references that it was given must outlive it.
// Threads  start() and the coroutine may be on different ones, one after the other.
// Errors   an exception that leaves the outermost coroutine ends the program.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "outcome.hpp"
#include "task.hpp"

namespace course_test {

class [[nodiscard]] driver {
 public:
  struct promise_type {
    driver get_return_object() noexcept {
      return driver{std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };

  explicit driver(std::coroutine_handle<promise_type> frame) noexcept : frame_{frame} {}
  driver(driver&& other) noexcept : frame_{std::exchange(other.frame_, nullptr)} {}
  ~driver() {
    if (frame_) frame_.destroy();
  }

  void start() const { frame_.resume(); }
  [[nodiscard]] bool has_ended() const noexcept { return frame_.done(); }
  [[nodiscard]] std::coroutine_handle<> handle() const noexcept { return frame_; }

 private:
  std::coroutine_handle<promise_type> frame_;
};

// Awaits a task and does not ask for its result: a test of awaiting is about that alone.
class until_ended {
 public:
  explicit until_ended(uring::task<> awaited)
      : awaited_{std::move(awaited)}, awaiter_{std::move(awaited_).operator co_await()} {}
  until_ended(until_ended&&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return awaiter_.await_ready(); }
  [[nodiscard]] auto await_suspend(std::coroutine_handle<> awaiting) const noexcept {
    return awaiter_.await_suspend(awaiting);
  }
  void await_resume() const noexcept {}

 private:
  uring::task<> awaited_;
  uring::task<>::awaiter awaiter_;
};

inline driver drive(uring::task<> awaited) {
  until_ended end{std::move(awaited)};
  co_await end;
}

template <typename T>
driver drive_into(uring::task<T> awaited, uring::outcome<T>& result) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(awaited);
      result.set_value();
    } else {
      decltype(auto) value = co_await std::move(awaited);
      result.set_value(std::forward<decltype(value)>(value));
    }
  } catch (...) {
    result.set_exception(std::current_exception());
  }
}

// Runs a task that never waits, and gives how it ended. take() its result.
template <typename T>
uring::outcome<T> run(uring::task<T> awaited) {
  uring::outcome<T> result;
  const driver outermost = drive_into(std::move(awaited), result);
  outermost.start();
  return result;
}

}  // namespace course_test
