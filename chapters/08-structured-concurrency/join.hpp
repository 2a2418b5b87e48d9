// SPDX-License-Identifier: MIT
// Runs several tasks at the same time, and resumes one coroutine, the joiner, when all have ended.
// Owns     the tasks, each in its joined_frame.
// Lifetime the counter and the frames live in the coroutine that joins.
// Threads  the one that runs the io_context.
// Errors   co_await counter throws the first exception that was reported with failed().
// Rule     join every task that was started. The count begins with one more than the tasks, for the
//          joiner, so that tasks which end before the joiner waits do not resume it.
#pragma once

#include <cassert>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <utility>

#include "cancel_source.hpp"
#include "outcome.hpp"
#include "task.hpp"
#include "todo.hpp"

namespace uring {

class join_counter {
 public:
  explicit join_counter(std::size_t tasks) noexcept : left_{tasks + 1} {}
  join_counter(join_counter&&) = delete;  // the frames hold its address

  void failed(std::exception_ptr error) noexcept {
    if (first_error_ == nullptr) first_error_ = std::move(error);
  }

  // A task has ended. Returns the coroutine to resume: the joiner, if it waits and every task has
  // ended; otherwise std::noop_coroutine(), which stands for no coroutine.
  [[nodiscard]] std::coroutine_handle<> arrive() noexcept {
    COURSE_TODO("08.1");
  }

  // co_await counter: waits until every task has ended.
  bool await_ready() const noexcept { return false; }
  // Keeps `joiner` for arrive(). True if the joiner has to wait; false if every task has ended.
  bool await_suspend(std::coroutine_handle<> joiner) noexcept {
    COURSE_TODO("08.1");
  }
  void await_resume() const {
    if (first_error_ != nullptr) std::rethrow_exception(first_error_);
  }

 private:
  std::size_t left_;  // the tasks that have not ended, plus one until the joiner waits
  std::coroutine_handle<> joiner_;
  std::exception_ptr first_error_;
};

// The frame around a joined task: at its end it resumes the coroutine that arrive() returns. A
// coroutine that returns a joined_frame takes the counter as its first parameter.
class joined_frame {
 public:
  struct promise_type;

  explicit joined_frame(std::coroutine_handle<promise_type> frame) noexcept : frame_{frame} {}
  joined_frame(joined_frame&& other) noexcept : frame_{std::exchange(other.frame_, nullptr)} {}
  ~joined_frame() {
    if (frame_) frame_.destroy();
  }

  // Runs the task up to its first wait.
  void start() { frame_.resume(); }

 private:
  std::coroutine_handle<promise_type> frame_;
};

struct joined_frame::promise_type {
  struct arrival {
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(
        std::coroutine_handle<promise_type> ended) const noexcept {
      const std::coroutine_handle<> next = ended.promise().counter.arrive();
      assert(next && "arrive() gave a null handle: to go nowhere is std::noop_coroutine()");
      return next;
    }
    void await_resume() const noexcept {}
  };

  // The promise gets the coroutine's parameters, see [dcl.fct.def.coroutine].
  template <typename... Rest>
  explicit promise_type(join_counter& joins, const Rest&...) noexcept : counter{joins} {}

  joined_frame get_return_object() noexcept {
    return joined_frame{std::coroutine_handle<promise_type>::from_promise(*this)};
  }
  std::suspend_always initial_suspend() const noexcept { return {}; }
  arrival final_suspend() const noexcept { return {}; }
  void return_void() const noexcept {}
  void unhandled_exception() const noexcept { counter.failed(std::current_exception()); }

  join_counter& counter;
};

// Awaits std::move(joined).as_outcome(), which does not throw, and keeps the outcome in `into`. If
// `into` then has an error(), gives this error to counter.failed(), and then cancels `others`. The
// order matters, because cancel() may throw, too, and only the first exception is kept.
template <typename T>
joined_frame join_or_cancel(join_counter& counter, cancel_source& others, task<T> joined,
                            outcome<T>& into) {
  COURSE_TODO("08.1");
}

}  // namespace uring
