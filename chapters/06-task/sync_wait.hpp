// SPDX-License-Identifier: MIT
// The way from ordinary code into a coroutine: starts a task, and blocks until the task ends.
// Owns     the task while it runs.
// Lifetime returns only when the task's frame has been destroyed.
// Threads  any that is not running coroutines, because a blocked thread cannot finish the task.
// Errors   the task's exception; std::logic_error on a thread that a running_coroutines object
//          marks. sync_wait() and promise<T> make such an object while they resume a coroutine.
// Rule     for main() and tests. Inside a coroutine, co_await.
#pragma once

#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

#include "countdown.hpp"
#include "outcome.hpp"
#include "running_coroutines.hpp"
#include "task.hpp"
#include "todo.hpp"

namespace uring {

template <typename T>
T sync_wait(task<T> awaited);

// Starts all tasks in order, and blocks until every task has ended. Then returns their results in
// that order, or throws the first exception in that order.
template <typename T>
  requires std::is_object_v<T>  // a vector cannot hold void or references
std::vector<T> sync_wait_all(std::vector<task<T>> awaited);

// The outermost coroutine: awaits a task, keeps its result, and wakes the thread that blocks.
class sync_wait_frame {
 public:
  struct promise_type;

  explicit sync_wait_frame(std::coroutine_handle<promise_type> frame) noexcept : frame_{frame} {}
  sync_wait_frame(sync_wait_frame&& other) noexcept
      : frame_{std::exchange(other.frame_, nullptr)} {}
  ~sync_wait_frame() {
    if (frame_) frame_.destroy();
  }

  void start(countdown& ended);

 private:
  std::coroutine_handle<promise_type> frame_;
};

struct sync_wait_frame::promise_type {
  // Notifies from final_suspend and not from the body, because the blocked thread may wake
  // immediately and destroy the frame, which must have suspended by then.
  struct notifier {
    bool await_ready() const noexcept { return false; }

    // The task has ended. Calls arrive() on the countdown that start() has put into the frame's
    // promise, as `ended`. After this call the frame may be gone.
    void await_suspend(std::coroutine_handle<promise_type> frame) const noexcept {
      COURSE_TODO("06.4");
    }

    void await_resume() const noexcept {}
  };

  sync_wait_frame get_return_object() noexcept {
    return sync_wait_frame{std::coroutine_handle<promise_type>::from_promise(*this)};
  }
  std::suspend_always initial_suspend() const noexcept { return {}; }
  notifier final_suspend() const noexcept { return {}; }
  void return_void() const noexcept {}
  void unhandled_exception() const noexcept { std::terminate(); }  // as_outcome() never throws

  countdown* ended = nullptr;
};

// Runs the task on this thread until it waits for the first time, or ends.
inline void sync_wait_frame::start(countdown& ended) {
  const running_coroutines here;
  frame_.promise().ended = &ended;
  frame_.resume();
}

// Makes a frame, and returns the object that owns it. Keep that object until the task has ended.
// The object's start() runs the frame, which writes to `result`, an object of the blocked caller.
template <typename T>
sync_wait_frame await_into(task<T> awaited, outcome<T>& result) {
  result = co_await std::move(awaited).as_outcome();
}

// Starts the task in the frame that await_into() makes. Blocks this thread in the wait() of a
// countdown, until the task has ended and the frame has called arrive().
template <typename T>
T sync_wait(task<T> awaited) {
  running_coroutines::forbid_blocking();
  outcome<T> result;
  COURSE_TODO("06.4");
  return result.take();
}

template <typename T>
  requires std::is_object_v<T>
std::vector<T> sync_wait_all(std::vector<task<T>> awaited) {
  running_coroutines::forbid_blocking();
  // You write the rest. The contract is at the declaration above. The objects that start() and
  // await_into() take by reference must stay where they are until every task has ended.
  COURSE_TODO("06.4");
}

}  // namespace uring
