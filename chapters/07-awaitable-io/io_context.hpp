// SPDX-License-Identifier: MIT
// The loop: an io_queue, and the tasks that run on it until the last has ended.
// Owns     the ring, and every task that was spawned, until it has ended.
// Lifetime it must outlive the code that starts operations on it. run() returns when no task is
//          left. The destructor ends tasks that still wait, so objects they use must outlive it.
// Threads  the one that made it, or that enabled its ring if the ring was made with is_disabled.
// Errors   std::system_error if the ring fails. An exception that escapes a spawned task stops all
//          tasks, and run() throws this exception when they have ended. If a request does not end,
//          the process ends, because the kernel may write to memory that would be given back.
// Rule     no frame is destroyed while one of its requests is in flight.
#pragma once

#include <chrono>
#include <cstdlib>
#include <exception>
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

  // Starts a task, runs it up to its first wait, and keeps it until it has ended. Throws
  // std::logic_error if a run() has failed, because then the ring is closed.
  void spawn(task<> started) {
    if (is_closed()) throw std::logic_error{"an earlier run() failed: this context has ended"};
    const running_coroutines here;
    tasks_.start(std::move(started));
  }

  // Returns when every spawned task has ended. Throws the first exception that escaped a task, or
  // std::logic_error if tasks wait and no operation is in flight that could resume one, or if a
  // coroutine calls run(), because that would block the thread that has to finish the coroutine.
  void run();

  // Spawns `first`, runs all tasks to their end, and returns the result of `first`. If `first`
  // throws, stops all tasks, and throws its exception, or the first that escapes another task.
  template <typename T>
  T run(task<T> first);

 private:
  class root_tasks final : public spawned_tasks {
   public:
    explicit root_tasks(io_queue& queue) noexcept : queue_{queue} {}

   private:
    void on_failure() override { queue_.stop(); }

    io_queue& queue_;
  };

  // Calls turn() as long as there are tasks. Before each turn, checks whether any operation is in
  // flight. If none is, the tasks would wait forever, even during a stop. In that case, throws a
  // std::logic_error, with a text that says that nothing is "in flight".
  void turn_until_all_have_ended() {
    COURSE_TODO("07.4");
  }

  void end_all() noexcept;
  void end_what_is_in_flight() noexcept;

  static constexpr std::chrono::seconds end_at_most_s{10};

  root_tasks tasks_{*this};
};

inline void io_context::run() {
  running_coroutines::forbid_blocking();
  try {
    const running_coroutines here;
    turn_until_all_have_ended();
  } catch (...) {
    const bool a_task_failed_first = tasks_.has_failed();
    end_all();  // may make further tasks fail
    if (a_task_failed_first) tasks_.rethrow_escaped();
    throw;
  }
  tasks_.rethrow_escaped();
}

// Ends all tasks, and destroys those that wait without a request. If another thread has not sent
// the message that a task expects, the frames are leaked, because that thread may write to them.
inline void io_context::end_all() noexcept {
  if (!is_closed()) end_what_is_in_flight();
  in_flight() == 0 ? tasks_.destroy_all() : tasks_.abandon();
}

// Cancels the requests of all tasks, so that the tasks end. If the ring has failed, close() still
// cancels all requests.
inline void io_context::end_what_is_in_flight() noexcept {
  const auto give_up_at = std::chrono::steady_clock::now() + end_at_most_s;
  stop();
  try {
    const running_coroutines here;
    while (in_flight() > 0 && std::chrono::steady_clock::now() < give_up_at) turn();
  } catch (const std::exception& error) {
    common::log(std::string{"io_context: cannot wait for what is in flight: "} + error.what());
  }
  if (close() || !has_requests()) return;
  common::log("io_context: a request does not end, and the kernel may still write to its memory");
  std::abort();
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
