// SPDX-License-Identifier: MIT
// Tasks that nobody awaits: started, kept until they have ended, and counted.
// Owns     their frames.
// Lifetime a frame is destroyed when its task has ended, or with this object. By then nothing may
//          be in flight for it.
// Threads  the one that runs the io_context.
// Errors   the first exception that escaped is kept for rethrow_escaped().
// Rule     no task is forgotten: whoever starts one asks until empty() says that all have ended.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <unordered_set>
#include <utility>

#include "outcome.hpp"
#include "task.hpp"
#include "todo.hpp"

namespace uring {

class spawned_tasks {
 public:
  spawned_tasks() = default;
  spawned_tasks(spawned_tasks&&) = delete;  // the frames know our address
  ~spawned_tasks() { destroy_all(); }

  // Runs `started` up to its first wait.
  void start(task<> started);

  [[nodiscard]] bool empty() const noexcept { return frames_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return frames_.size(); }

  [[nodiscard]] bool any_escaped() const noexcept { return escaped_ != nullptr; }
  void rethrow_escaped() {
    if (any_escaped()) std::rethrow_exception(std::exchange(escaped_, nullptr));
  }

  void destroy_all() noexcept {
    while (!frames_.empty()) std::coroutine_handle<>::from_address(*frames_.begin()).destroy();
  }

  // For frames that the kernel still works for, and always will: better lost than written to.
  void abandon() noexcept { frames_.clear(); }

 private:
  class keeper;

  static keeper keep(spawned_tasks& all, task<> started);

  std::unordered_set<void*> frames_;  // of tasks that have not ended
  std::exception_ptr escaped_;
};

// The outermost coroutine of a spawned task; its frame is what frames_ has the address of.
class spawned_tasks::keeper {
 public:
  struct promise_type {
    // [dcl.fct.def.coroutine] gives the promise what the coroutine gets.
    promise_type(spawned_tasks& all, const task<>&) : all_{all} { all_.frames_.insert(address()); }
    promise_type(promise_type&&) = delete;
    ~promise_type() { all_.frames_.erase(address()); }

    keeper get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }  // and so destroys itself
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }  // as_outcome() lets none out

   private:
    void* address() { return std::coroutine_handle<promise_type>::from_promise(*this).address(); }

    spawned_tasks& all_;
  };
};

inline void spawned_tasks::start(task<> started) {
  // --8<-- [start:task-07-2]
  keep(*this, std::move(started));
  // --8<-- [end:task-07-2]
}

inline spawned_tasks::keeper spawned_tasks::keep(spawned_tasks& all, task<> started) {
  // --8<-- [start:task-07-2b]
  const outcome<void> ended = co_await std::move(started).as_outcome();
  if (ended.error() != nullptr && all.escaped_ == nullptr) all.escaped_ = ended.error();
  // --8<-- [end:task-07-2b]
}

}  // namespace uring
