// SPDX-License-Identifier: MIT
// The loop: it submits what tasks ask for, and gives each completion to the operation it is for.
// Owns     the ring, and every spawned task until it has ended.
// Lifetime it must outlive whoever starts operations on it. run() leaves only when no task is left;
//          so does the destructor, for tasks that nobody ran: what they refer to must outlive it.
// Threads  the one that made it.
// Errors   std::system_error if the ring fails. An exception that escapes a spawned task stops all
//          of them, and run() throws it when they have ended.
// Rule     no frame is destroyed while the kernel works for it.
// See      io_uring_enter(2)
#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "io_queue.hpp"
#include "log.hpp"
#include "outcome.hpp"
#include "running_coroutines.hpp"
#include "spawned_tasks.hpp"
#include "task.hpp"
#include "todo.hpp"

namespace uring {

class io_context : public io_queue {
 public:
  explicit io_context(const ring_options& options = {}) : io_queue{options} {}
  ~io_context() { end_all(); }

  // Starts a task, runs it up to its first wait, and keeps it until it has ended.
  void spawn(task<> started);

  // Returns when every spawned task has ended. Throws what escaped one of them, the first if it was
  // several; std::logic_error if tasks wait and no operation is in flight that could wake one, or
  // if a coroutine calls it, which this thread would have to go on with.
  void run();

  // Spawns `first`, runs everything to its end, and returns what `first` returned. If it throws,
  // everything is stopped, and this throws the same.
  template <typename T>
  T run(task<T> first);

  // True in the destructors of tasks that wait for nothing, see end_all(): nobody goes on any more.
  [[nodiscard]] bool is_destroying() const noexcept { return is_destroying_; }

 private:
  // One round of the loop: one system call, then everything that has completed.
  void turn() {
    if (tasks_.any_escaped() && !is_stopping()) stop();
    cancel_what_is_due();
    const wake woken = wait_and_deliver();
    if (woken == wake::timeout) cancel_again();
  }

  // Hands the kernel what was started and waits, both in one system call, but no longer than
  // wait_at_most(). Delivers everything that has completed. Returns why the wait ended.
  wake wait_and_deliver() {
    COURSE_TODO("07.3");
  }

  // Turns as long as there are tasks. Tasks that wait while nothing is in flight would wait for
  // ever: that is a std::logic_error whose text says that nothing is "in flight", not a sleep.
  void turn_until_all_have_ended() {
    COURSE_TODO("07.3");
  }

  [[nodiscard]] std::optional<std::chrono::milliseconds> wait_at_most() const noexcept {
    if (is_stopping()) return cancel_again_ms;
    return std::nullopt;
  }

  void end_all() noexcept;

  static constexpr std::chrono::milliseconds cancel_again_ms{20};
  static constexpr std::chrono::seconds end_at_most_s{10};

  spawned_tasks tasks_;
  bool is_destroying_ = false;
};

inline void io_context::spawn(task<> started) {
  const running_coroutines here;
  tasks_.start(std::move(started));
}

inline void io_context::run() {
  running_coroutines::forbid_blocking();
  try {
    const running_coroutines here;
    turn_until_all_have_ended();
  } catch (...) {
    end_all();
    tasks_.rethrow_escaped();  // what came first, if it is that
    throw;
  }
  tasks_.rethrow_escaped();
}

// Cancels what tasks wait for, so that they end; those that then wait for nothing are destroyed.
// If the ring has failed, it can still be asked to let go of every buffer. If not even that works,
// the frames that it may write to are better lost.
inline void io_context::end_all() noexcept {
  const auto give_up_at = std::chrono::steady_clock::now() + end_at_most_s;
  stop();
  try {
    const running_coroutines here;
    while (in_flight_ > 0 && std::chrono::steady_clock::now() < give_up_at) turn();
  } catch (const std::exception& error) {
    common::log(std::string{"io_context: cannot wait for what is in flight: "} + error.what());
  }
  is_destroying_ = true;
  drop_all() ? tasks_.destroy_all() : tasks_.abandon();
  is_destroying_ = false;
}

template <typename T>
task<> keep_outcome(io_context& context, task<T> first, outcome<T>& into) {
  outcome<T> ended = co_await std::move(first).as_outcome();
  if (ended.error() != nullptr) context.stop();
  into = std::move(ended);
}

template <typename T>
T io_context::run(task<T> first) {
  running_coroutines::forbid_blocking();
  outcome<T> result;
  spawn(keep_outcome(*this, std::move(first), result));
  run();
  return result.take();
}

}  // namespace uring
