// SPDX-License-Identifier: MIT
// A place that tasks are spawned into, and that is not left before they have ended.
// Owns     the count of its tasks, and the source that ends them. Their frames are the context's.
// Lifetime join() it before it goes: the destructor asserts that it is empty.
// Threads  the one that runs the io_context.
// Errors   the first exception that escapes one of its tasks cancels the others; join() throws it.
//          spawn() throws std::bad_alloc, and then nothing was spawned.
// Rule     no task outlives its scope, nor do a task's parameters: so it may refer to whatever the
//          scope's owner has. What can throw between spawn() and join() belongs into a task, too.
#pragma once

#include <cassert>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <utility>

#include "cancel_source.hpp"
#include "io_context.hpp"
#include "outcome.hpp"
#include "task.hpp"
#include "todo.hpp"

namespace uring {

class scope {
 public:
  class joining;

  explicit scope(io_context& context) noexcept : context_{context} {}
  // Canceled with the parent of its source, too.
  scope(io_context& context, child_of above) : context_{context}, source_{above} {}
  scope(scope&&) = delete;  // its tasks hold its address
  ~scope() {
    assert((size_ == 0 || context_.is_destroying()) &&
           "co_await join() first: a task of this scope still runs");
  }

  // Runs `started` up to its first wait. A task of the scope may spawn another, also during join().
  void spawn(task<> started) { context_.spawn(keep(std::move(started))); }

  // Give it to whatever the tasks await.
  [[nodiscard]] cancel_source& source() noexcept { return source_; }
  void cancel() { source_.cancel(); }

  // co_await scope.join(): until no task is left. Throws what escaped one of them.
  [[nodiscard]] joining join() noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  // Around each task: counts it from its start to its end. When it has ended its frame goes: an
  // empty task, task<>{nullptr}, is assigned over it. An exception ends the others.
  task<> keep(task<> started) {
    // --8<-- [start:task-08-5]
    ++size_;
    const outcome<void> ended = co_await std::move(started).as_outcome();
    started = task<>{nullptr};  // its parameters go with its frame, before anybody is told
    --size_;
    if (ended.error() != nullptr) {
      if (escaped_ == nullptr) escaped_ = ended.error();
      source_.cancel();
    }
    // --8<-- [end:task-08-5]
    if (size_ == 0 && joiner_) std::exchange(joiner_, nullptr).resume();
  }

  io_context& context_;
  cancel_source source_;
  std::size_t size_ = 0;  // tasks that have not ended
  std::coroutine_handle<> joiner_;
  std::exception_ptr escaped_;
};

class [[nodiscard("it joins when it is awaited")]] scope::joining {
 public:
  explicit joining(scope& joined) noexcept : scope_{joined} {}

  // Nobody to wait for; else the last task resumes `joiner`; and then what escaped one of them.
  bool await_ready() const noexcept {
    // --8<-- [start:task-08-5b]
    return scope_.size_ == 0;
    // --8<-- [end:task-08-5b]
  }
  void await_suspend(std::coroutine_handle<> joiner) noexcept {
    assert(!scope_.joiner_ && "two coroutines join one scope");
    scope_.joiner_ = joiner;
  }
  void await_resume() const {
    // --8<-- [start:task-08-5c]
    if (scope_.escaped_ == nullptr) return;
    std::rethrow_exception(std::exchange(scope_.escaped_, nullptr));
    // --8<-- [end:task-08-5c]
  }

 private:
  scope& scope_;
};

inline scope::joining scope::join() noexcept {
  return joining{*this};
}

}  // namespace uring
