// SPDX-License-Identifier: MIT
// A coroutine that starts when it is awaited, and hands its result to the coroutine that awaits it.
// Owns     the coroutine's frame, which keeps the result until it is taken.
// Lifetime the task must outlive its run: `co_await child()` keeps it until the result is there.
//          The object behind a reference parameter must live as long, because the frame has only
//          the object's address.
// Threads  one at a time: the body continues on the thread that resumes it.
// Errors   co_await throws the exception that left the body.
// Rule     awaited once, and only as an rvalue: co_await child(), or co_await std::move(t). Write
//          coroutines as named functions, because a lambda's captures are not in the frame.
#pragma once

#include <cassert>
#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>

#include "outcome.hpp"
#include "todo.hpp"

namespace uring {

template <typename T>
class task_promise;

template <typename T = void>
class [[nodiscard("a task that nobody awaits never runs")]] task {
 public:
  using promise_type = task_promise<T>;  // the compiler looks for this name
  class awaiter;
  class outcome_awaiter;

  explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_{frame} {}

  // Takes over the frame of `other`, whose frame_ is null afterwards.
  task(task&& other) noexcept {
    COURSE_TODO("06.1");
  }

  task& operator=(task other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;  // and `other` destroys the frame that we had
  }

  // Destroys the frame, if there is one. The coroutine is suspended then, whether before its first
  // line, in the middle, or at its end.
  ~task() {
    COURSE_TODO("06.1");
  }

  awaiter operator co_await() && noexcept { return awaiter{unawaited()}; }
  void operator co_await() & = delete;  // a task is awaited once: write co_await std::move(t)

  // co_await std::move(t).as_outcome() never throws: the exception is in the outcome.
  outcome_awaiter as_outcome() && noexcept { return outcome_awaiter{unawaited()}; }

 private:
  // Returns the frame, which must exist and must not have been started.
  std::coroutine_handle<promise_type> unawaited() const noexcept {
    assert(frame_ && "this task is empty: it was moved from");
    assert(!frame_.promise().is_awaited() && "this task was awaited before");
    return frame_;
  }

  std::coroutine_handle<promise_type> frame_;
};

// Awaited by the frame when its body has ended: the frame suspends for good, and its continuation
// runs. The continuation is never null, because it was stored before the body began.
struct final_awaiter {
  bool await_ready() const noexcept { return false; }
  // Returns the promise's continuation(), so the thread jumps there and keeps nothing on the stack.
  template <typename Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
    COURSE_TODO("06.2");
  }
  void await_resume() const noexcept {}
};

// How the body may end. A promise has either return_value() or return_void(), never both.
template <typename T>
struct returning {
  outcome<T> result;

  // `co_return value` calls this. (With `co_return {1, 2};`, Value is T. The line with `requires`
  // allows only values that convert to T implicitly.) Gives the value to result.set_value(), which
  // makes the T, so use std::forward<Value>(value). A cast would make another T first, and move it.
  template <typename Value = T>
    requires std::is_convertible_v<Value, T>
  void return_value(Value&& value) {
    COURSE_TODO("06.3");
  }
};

template <>
struct returning<void> {
  outcome<void> result;
  void return_void() { result.set_value(); }
};

// Lives in the frame, from before the first line of the body until the frame is destroyed.
template <typename T>
class task_promise : public returning<T> {
 public:
  // Returns a task that owns this frame. The coroutine's caller gets this task.
  task<T> get_return_object() noexcept {
    COURSE_TODO("06.1");
  }

  std::suspend_always initial_suspend() const noexcept { return {}; }  // lazy
  final_awaiter final_suspend() const noexcept { return {}; }
  // An exception has left the body. Gives std::current_exception() to this->result.set_exception().
  void unhandled_exception() noexcept {
    COURSE_TODO("06.3");
  }

  void set_continuation(std::coroutine_handle<> next) noexcept { continuation_ = next; }
  [[nodiscard]] std::coroutine_handle<> continuation() const noexcept { return continuation_; }
  [[nodiscard]] bool is_awaited() const noexcept { return continuation_ != nullptr; }

 private:
  std::coroutine_handle<> continuation_;  // stored before the body runs, resumed after it
};

template <typename T>
class task<T>::awaiter {
 public:
  explicit awaiter(std::coroutine_handle<promise_type> frame) noexcept : frame_{frame} {}

  bool await_ready() const noexcept { return false; }  // it has not even started
  // Stores `awaiting` with the promise's set_continuation(). Then transfers into the task.
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) const noexcept {
    COURSE_TODO("06.2");
  }

  // The body has ended. result.take(), in the promise, returns its value or throws its exception.
  T await_resume() const {
    COURSE_TODO("06.3");
  }

 protected:
  std::coroutine_handle<promise_type> frame_;
};

template <typename T>
class task<T>::outcome_awaiter : public task<T>::awaiter {
 public:
  using awaiter::awaiter;
  outcome<T> await_resume() const { return std::move(this->frame_.promise().result); }
};

}  // namespace uring
