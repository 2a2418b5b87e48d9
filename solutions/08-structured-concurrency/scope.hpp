// SPDX-License-Identifier: MIT
// Keeps the tasks that are spawned into it. Its run() does not return before all have ended.
// Owns     the frames of its tasks, and the source that ends them.
// Lifetime it lives in the frame of the coroutine that awaits run(). The destructor asserts that
//          nothing is in flight for a task that is left.
// Threads  the one that runs the queue.
// Errors   the first exception that escapes one of its tasks cancels the others. When all have
//          ended, run() throws it. spawn() throws std::bad_alloc, and then nothing was spawned.
// Rule     no task outlives its scope, nor do a task's parameters. So a task may refer to the
//          objects that the frame around the scope has during run(). That frame waits in run(), so
//          that no exception can destroy it before the tasks have ended. A task must not refer to
//          objects of the task that spawned it, which may end first.
#pragma once

#include <cassert>
#include <coroutine>
#include <utility>

#include "cancel_source.hpp"
#include "io_queue.hpp"
#include "spawned_tasks.hpp"
#include "task.hpp"
#include "todo.hpp"

namespace uring {

class scope final : private spawned_tasks {
 public:
  explicit scope(io_queue& queue) noexcept : queue_{queue}, source_{queue} {}
  // This scope is canceled when above.parent is, because its source is a child of that source.
  scope(io_queue& queue, child_of above) : queue_{queue}, source_{above} {}
  ~scope() { destroy_tasks(); }

  // Destroys the tasks that are left, for an owner with other members that these tasks use.
  void destroy_tasks() noexcept {
    assert((empty() || queue_.in_flight() == 0) && "a task of this scope is still at work");
    destroy_all();
  }

  // co_await all.run(accept_clients(all)): runs `body` as the first task of this scope. Every task
  // may spawn others. When all have ended, throws the first exception that escaped one, if any.
  task<> run(task<> body) {
    assert(!is_running_ && "one run() of a scope at a time");
    assert(!continuation_ && "what an earlier run() left here has been resumed: set it to null");
    is_running_ = true;  // until `co_await all_ended{*this}` resumes
    // --8<-- [start:task-08-5]
    spawn(std::move(body));
    co_await all_ended{*this};
    rethrow_escaped();
    // --8<-- [end:task-08-5]
  }

  // Runs `started` up to its first wait. Only tasks of the scope call this, while run() is awaited.
  void spawn(task<> started) {
    assert(is_running_ && "spawn from a task of the scope, while run() is awaited");
    start(std::move(started));
  }

  // A recv_op(all.source(), …), for example, ends when the scope `all` is canceled.
  [[nodiscard]] cancel_source& source() noexcept { return source_; }
  void cancel() { source_.cancel(); }

  using spawned_tasks::size;

 private:
  // co_await all_ended{*this}: waits until no task is left.
  struct all_ended {
    // True if no task is left to wait for.
    bool await_ready() const noexcept {
      // --8<-- [start:task-08-5b]
      return all.empty();
      // --8<-- [end:task-08-5b]
    }
    void await_suspend(std::coroutine_handle<> waiting) const noexcept {
      all.continuation_ = waiting;
    }
    void await_resume() const noexcept { all.is_running_ = false; }

    scope& all;
  };

  // The first exception has escaped a task. Asks the other tasks of this scope to end.
  void on_failure() override {
    // --8<-- [start:task-08-5c]
    source_.cancel();
    // --8<-- [end:task-08-5c]
  }

  // The last task has ended. If a coroutine waits, returns the handle in continuation_, so that the
  // coroutine goes on now, and sets continuation_ to null. If no coroutine waits yet, returns
  // std::noop_coroutine().
  std::coroutine_handle<> on_empty() noexcept override {
    // --8<-- [start:task-08-5d]
    if (!continuation_) return std::noop_coroutine();
    return std::exchange(continuation_, nullptr);
    // --8<-- [end:task-08-5d]
  }

  [[maybe_unused]] io_queue& queue_;  // only an assert uses it
  cancel_source source_;
  std::coroutine_handle<> continuation_;
  bool is_running_ = false;
};

}  // namespace uring
