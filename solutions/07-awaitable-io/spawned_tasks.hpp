// SPDX-License-Identifier: MIT
// Tasks that nobody awaits: started, kept until they have ended, and counted.
// Owns     their frames.
// Lifetime a frame is destroyed when its task has ended, or with this object: the last started
//          first, since it may refer to what an earlier one owns. By then nothing may be in flight
//          for it.
// Threads  the one that runs the io_context.
// Errors   the first exception that escaped is kept for rethrow_escaped().
// Rule     no task is forgotten: whoever starts one asks until empty() says that all have ended.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
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

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  [[nodiscard]] bool any_escaped() const noexcept { return escaped_ != nullptr; }
  void rethrow_escaped() {
    if (any_escaped()) std::rethrow_exception(std::exchange(escaped_, nullptr));
  }

  void destroy_all() noexcept;

  // For frames that the kernel still works for, and always will: better lost than written to.
  void abandon() noexcept {
    newest_ = nullptr;
    size_ = 0;
  }

 private:
  class keeper;

  struct neighbors {
    neighbors* older = nullptr;
    neighbors* newer = nullptr;
  };

  static keeper keep(spawned_tasks& all, task<> started);

  neighbors* newest_ = nullptr;  // of the tasks that have not ended, each in its keeper's promise
  std::size_t size_ = 0;
  std::exception_ptr escaped_;
};

// The outermost coroutine of a spawned task; its promise is what stands in the list.
class spawned_tasks::keeper {
 public:
  struct promise_type : neighbors {
    // [dcl.fct.def.coroutine] gives the promise what the coroutine gets.
    promise_type(spawned_tasks& all, const task<>&) noexcept : all_{all} {
      older = std::exchange(all_.newest_, this);
      if (older != nullptr) older->newer = this;
      ++all_.size_;
    }
    promise_type(promise_type&&) = delete;
    ~promise_type() {
      (newer != nullptr ? newer->older : all_.newest_) = older;
      if (older != nullptr) older->newer = newer;
      --all_.size_;
    }

    keeper get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }  // and so destroys itself
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }  // as_outcome() lets none out

   private:
    spawned_tasks& all_;
  };
};

inline void spawned_tasks::destroy_all() noexcept {
  while (!empty()) {
    auto& promise = static_cast<keeper::promise_type&>(*newest_);
    std::coroutine_handle<keeper::promise_type>::from_promise(promise).destroy();
  }
}

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
