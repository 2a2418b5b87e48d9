// SPDX-License-Identifier: MIT
// A ring with an io_operation behind every request: started here, and told here how it ended.
// Owns     the ring. Operations are their starters', see io_operation.hpp.
// Lifetime it must outlive every operation that was started on it.
// Threads  the one that made it.
// Errors   std::system_error if the ring takes no more requests.
// Rule     a completion was copied out, and the queue advanced, before anything is told of it.
// See      io_uring_prep_cancel(3), io_uring_prep_msg_ring(3)
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>

#include "io_operation.hpp"
#include "ring.hpp"

namespace uring {

class io_queue {
 public:
  io_queue(io_queue&&) = delete;  // operations and tasks hold its address

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

  // From now on whatever has to wait is canceled, also what a task awaits after that: it completes
  // with -ECANCELED. What can be done at once (a close, a shutdown) is still done.
  void stop() noexcept { stopping_ = cancel_due_ = true; }
  [[nodiscard]] bool is_stopping() const noexcept { return stopping_; }

  // --8<-- [start:deliver]
  // Gives a completion to its operation. Unless more follow, the kernel is done with it, and what
  // the operation resumes may destroy it. Public for tests, which play the kernel.
  void deliver(const completion& done) {
    if ((done.flags & IORING_CQE_F_MORE) == 0) --in_flight_;
    reinterpret_cast<io_operation*>(done.user_data)->complete(done);
  }
  // --8<-- [end:deliver]

  // One completion will come that nobody starts here: the message of another context's msg_ring_op.
  // Whoever calls this sees to it that it is sent, or run() waits for it.
  void expect_message() noexcept { ++in_flight_; }

  // Operations whose last completion was not delivered.
  [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_; }

  // For io_uring_register_*(3) and for a message's address; its queues are ours.
  [[nodiscard]] ::io_uring& handle() noexcept { return ring_.handle(); }

 protected:
  explicit io_queue(const ring_options& options) : ring_{options} {}
  ~io_queue() = default;

  // Once for whatever was started since the last time, if a stop was asked for.
  void cancel_what_is_due() {
    if (!cancel_due_) return;
    start(nobody_,
          [](::io_uring_sqe& sqe) { ::io_uring_prep_cancel64(&sqe, 0, IORING_ASYNC_CANCEL_ANY); });
    cancel_due_ = false;
  }

  // An operation on its way to wait when it was to be canceled may have been missed.
  void cancel_again() noexcept { cancel_due_ = stopping_; }

  // The kernel has let go of every buffer, though nobody was told: nothing will be delivered.
  bool drop_all() noexcept {
    if (in_flight_ > 0 && !ring_.cancel_all()) return false;
    in_flight_ = 0;
    return true;
  }

  ring ring_;
  std::size_t in_flight_ = 0;

 private:
  bool stopping_ = false;
  bool cancel_due_ = false;  // there may be something in flight that was not asked to end
  io_operation nobody_{[](io_operation&, const completion&) {}};  // a cancel: its target will tell
};

}  // namespace uring
