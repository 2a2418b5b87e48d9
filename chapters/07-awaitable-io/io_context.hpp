// SPDX-License-Identifier: MIT
// The loop: it submits what tasks ask for, and gives each completion to the operation it is for.
// Owns     the ring, and every spawned task until it has ended.
// Lifetime it must outlive whoever starts operations on it. run() leaves only when no task is left;
//          so does the destructor, for tasks that nobody ran: what they refer to must outlive it.
// Threads  the one that made it.
// Errors   std::system_error if the ring fails. An exception that escapes a spawned task stops all
//          of them, and run() throws it when they have ended.
// Rule     no frame is destroyed while the kernel works for it.
// See      io_uring_enter(2), io_uring_prep_cancel(3)
#pragma once

#include <liburing.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "io_operation.hpp"
#include "log.hpp"
#include "outcome.hpp"
#include "ring.hpp"
#include "spawned_tasks.hpp"
#include "sync_wait.hpp"
#include "task.hpp"
#include "todo.hpp"

namespace uring {

class io_context {
 public:
  explicit io_context(const ring_options& options = {}) : ring_{options} {}
  io_context(io_context&&) = delete;  // operations and tasks hold its address
  ~io_context() { end_all(); }

  // Starts a task, runs it up to its first wait, and keeps it until it has ended.
  void spawn(task<> started);

  // Returns when every spawned task has ended. Throws what escaped one of them, the first if it was
  // several; std::logic_error if tasks wait and no operation is in flight that could wake one.
  void run();

  // Spawns `first`, runs everything to its end, and returns what `first` returned. If it throws,
  // everything is stopped, and this throws the same.
  template <typename T>
  T run(task<T> first);

  // From now on whatever has to wait is canceled, also what a task awaits after that: it completes
  // with -ECANCELED. What can be done at once (a close, a shutdown) is still done.
  void stop() noexcept { stopping_ = cancel_due_ = true; }
  [[nodiscard]] bool is_stopping() const noexcept { return stopping_; }

  // Prepares a request by `prepare(sqe)`, which must not throw; `operation` will be told how it
  // ends. The next turn submits it.
  template <typename Prepare>
  void start(io_operation& operation, const Prepare& prepare) {
    ::io_uring_sqe& sqe = ring_.get_sqe();
    // Not to be left in the middle: what stands in a slot of the queue is submitted.
    [&]() noexcept { prepare(sqe); }();
    ::io_uring_sqe_set_data(&sqe, &operation);
    ++in_flight_;
    cancel_due_ = stopping_;
  }

  // Makes room, so that the next `count` start() are submitted together: for linked requests.
  void reserve(unsigned count) { ring_.reserve(count); }

  // Asks for the end of an operation. If it is in flight, it completes with -ECANCELED, or as if
  // nobody had asked: its own completion tells which.
  void cancel(const io_operation& target) {
    start(nobody_, [&target](::io_uring_sqe& sqe) {
      ::io_uring_prep_cancel64(&sqe, reinterpret_cast<std::uint64_t>(&target), 0);
    });
  }

  // Gives a completion to its operation. Unless more follow, the kernel is done with it, and what
  // the operation resumes may destroy it. Public for tests, which play the kernel.
  void deliver(const completion& done) {
    if ((done.flags & IORING_CQE_F_MORE) == 0) --in_flight_;
    reinterpret_cast<io_operation*>(done.user_data)->complete(done);
  }

  // One completion will come that nobody starts here: the message of another context's msg_ring_op.
  // Whoever calls this sees to it that it is sent, or run() waits for it.
  void expect_message() noexcept { ++in_flight_; }

  [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_; }

  // For io_uring_register_*(3) and for a message's address; its queues are ours.
  [[nodiscard]] ::io_uring& handle() noexcept { return ring_.handle(); }

 private:
  // One round of the loop: one system call, then everything that has completed.
  void turn() {
    if (tasks_.any_escaped() && !stopping_) stop();
    if (cancel_due_) cancel_everything();
    const wake woken = wait_and_deliver();
    // It was on its way to wait when we canceled, and was missed: once more.
    if (stopping_ && woken == wake::timeout) cancel_due_ = true;
  }

  // Hands the kernel what was started and waits, both in one system call, but no longer than
  // wait_at_most(). Delivers everything that has completed. Returns why the wait ended.
  wake wait_and_deliver() {
    COURSE_TODO("07.3");
  }

  // Turns as long as there are tasks. Tasks that wait while nothing is in flight would wait for
  // ever: that is a std::logic_error, not a sleep.
  void turn_until_all_have_ended() {
    COURSE_TODO("07.3");
  }

  void cancel_everything() {
    start(nobody_,
          [](::io_uring_sqe& sqe) { ::io_uring_prep_cancel64(&sqe, 0, IORING_ASYNC_CANCEL_ANY); });
    cancel_due_ = false;
  }

  [[nodiscard]] std::optional<std::chrono::milliseconds> wait_at_most() const noexcept {
    if (stopping_) return cancel_again_ms;
    return std::nullopt;
  }

  void end_all() noexcept;

  static constexpr std::chrono::milliseconds cancel_again_ms{20};
  static constexpr std::chrono::seconds end_at_most_s{10};

  spawned_tasks tasks_;
  ring ring_;                  // destroyed before tasks_: their frames hold the kernel's buffers
  std::size_t in_flight_ = 0;  // operations whose last completion was not delivered
  bool stopping_ = false;
  bool cancel_due_ = false;  // there may be something in flight that was not asked to end
  io_operation nobody_{[](io_operation&, const completion&) {}};  // a cancel: its target will tell
};

inline void io_context::spawn(task<> started) {
  const running_coroutines here;
  tasks_.start(std::move(started));
}

inline void io_context::run() {
  try {
    const running_coroutines here;
    turn_until_all_have_ended();
  } catch (...) {
    end_all();
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
  if (in_flight_ > 0 && !ring_.cancel_all()) return tasks_.abandon();
  in_flight_ = 0;
  tasks_.destroy_all();
}

template <typename T>
task<> keep_outcome(io_context& context, task<T> first, outcome<T>& into) {
  outcome<T> ended = co_await std::move(first).as_outcome();
  if (ended.error() != nullptr) context.stop();
  into = std::move(ended);
}

template <typename T>
T io_context::run(task<T> first) {
  outcome<T> result;
  spawn(keep_outcome(*this, std::move(first), result));
  run();
  return result.take();
}

}  // namespace uring
