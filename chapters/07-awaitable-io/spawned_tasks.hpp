// SPDX-License-Identifier: MIT
// Tasks that are not awaited by the code that starts them: kept until they have ended, and counted.
// Owns     their frames.
// Lifetime a frame is destroyed after its task has ended, or with this object (the last started
//          first). By then no operation in the frame may be in flight.
// Threads  the one that runs the io_context.
// Errors   start() throws std::bad_alloc. rethrow_escaped() throws the tasks' first exception.
// Rule     no task is forgotten: the owner waits until empty().
#pragma once

#include <cassert>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <utility>

#include "first_run.hpp"
#include "list_link.hpp"
#include "outcome.hpp"
#include "task.hpp"
#include "todo.hpp"

namespace uring {

class spawned_tasks {
 public:
  spawned_tasks() = default;
  spawned_tasks(spawned_tasks&&) = delete;  // the frames hold our address

  // Runs `started` up to its first wait. If calls nest too deeply, the outermost runs it later.
  void start(task<> started);

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  // Keeps the first exception that escapes a task.
  void failed(std::exception_ptr error) {
    if (escaped_ != nullptr) return;
    escaped_ = std::move(error);
    on_failure();
  }
  [[nodiscard]] bool has_failed() const noexcept { return escaped_ != nullptr; }
  void rethrow_escaped() {
    if (escaped_ != nullptr) std::rethrow_exception(std::exchange(escaped_, nullptr));
  }

  void destroy_all() noexcept;

  // Leaks the frames, which must not be freed because another thread may still write to them.
  void abandon() noexcept;

 protected:
  ~spawned_tasks() { destroy_all(); }

 private:
  struct keeper_promise;
  struct keeper {
    using promise_type = keeper_promise;
    std::coroutine_handle<keeper_promise> frame;
  };

  virtual void on_failure() {}  // called when the first exception has escaped
  // Called when the last task has ended. Returns the coroutine to resume next.
  virtual std::coroutine_handle<> on_empty() noexcept { return std::noop_coroutine(); }

  static keeper keep(spawned_tasks& all, task<> started);
  void destroy_ended() noexcept;

  linked_list<keeper_promise> running_;          // not ended, in the order of their starts
  std::size_t size_ = 0;                         // of running_
  std::coroutine_handle<keeper_promise> ended_;  // the last to end; the next to end destroys it
  std::exception_ptr escaped_;
};

struct spawned_tasks::keeper_promise : list_link {
  // The last step of the frame: takes it out of running_. The next frame that ends destroys it.
  struct ending {
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(
        std::coroutine_handle<keeper_promise> frame) const noexcept {
      spawned_tasks& owner = frame.promise().all;
      frame.promise().leave();
      owner.destroy_ended();
      owner.ended_ = frame;
      if (!owner.empty()) return std::noop_coroutine();
      const std::coroutine_handle<> next = owner.on_empty();
      assert(next && "on_empty() gave a null handle: to go nowhere is std::noop_coroutine()");
      return next;
    }
    void await_resume() const noexcept {}
  };

  // The promise gets the coroutine's parameters, see [dcl.fct.def.coroutine].
  keeper_promise(spawned_tasks& keeps, const task<>&) noexcept : all{keeps} {
    all.running_.push_back(*this);
    ++all.size_;
  }
  keeper_promise(keeper_promise&&) = delete;
  ~keeper_promise() { leave(); }

  void leave() noexcept {
    if (!is_linked()) return;
    unlink();
    --all.size_;
  }

  keeper get_return_object() noexcept {
    return {std::coroutine_handle<keeper_promise>::from_promise(*this)};
  }
  std::suspend_always initial_suspend() const noexcept { return {}; }
  ending final_suspend() const noexcept { return {}; }
  void return_void() const noexcept {}
  // A scope's on_failure() (chapter 08) throws if the ring fails; the next turn throws the same.
  void unhandled_exception() const noexcept { all.failed(std::current_exception()); }

  spawned_tasks& all;
};

// Calls keep(), a coroutine that will await `started`. The call makes a frame, and returns a keeper
// with the frame's handle. Gives that handle to run_to_first_wait().
inline void spawned_tasks::start(task<> started) {
  COURSE_TODO("07.3");
}

// Awaits std::move(started).as_outcome(), which does not throw. Then assigns an empty task,
// task<>{nullptr}, to `started`, which destroys the task's frame and its parameters. Last, if the
// outcome has an error(), gives this error to all.failed(). That call may stop the other tasks, and
// by then the failed task must have released what it held.
inline spawned_tasks::keeper spawned_tasks::keep(spawned_tasks& all, task<> started) {
  COURSE_TODO("07.3");
}

inline void spawned_tasks::destroy_ended() noexcept {
  if (ended_) std::exchange(ended_, nullptr).destroy();
}

inline void spawned_tasks::destroy_all() noexcept {
  destroy_ended();
  while (!running_.empty()) {
    const auto frame = std::coroutine_handle<keeper_promise>::from_promise(running_.back());
    cancel_first_run(frame);
    frame.destroy();
  }
}

inline void spawned_tasks::abandon() noexcept {
  while (!running_.empty()) {
    cancel_first_run(std::coroutine_handle<keeper_promise>::from_promise(running_.back()));
    running_.back().leave();
  }
}

}  // namespace uring
