// SPDX-License-Identifier: MIT
// A ring with an io_operation behind every request: it starts requests and delivers completions.
// Owns     the ring. Operations belong to the code that starts them, see io_operation.hpp.
// Lifetime it must outlive every operation that was started on it.
// Threads  the one that made or enabled it. Others reach it only with a msg_ring_op on their ring.
// Errors   std::system_error if the ring takes no more requests. If operations or a receiver throw,
//          turn() throws the first exception when all completions are delivered.
// Rule     it copies completions out, and advances the queue, before it calls any operation.
// See      io_uring_enter(2), io_uring_cancelation(7)
#pragma once

#include <liburing.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "cancel_reminder.hpp"
#include "canceler.hpp"
#include "end_requests.hpp"
#include "first_exception.hpp"
#include "io_operation.hpp"
#include "message.hpp"
#include "ring.hpp"
#include "todo.hpp"

namespace uring {

class io_queue {
 public:
  explicit io_queue(const ring_options& options = {}) : ring_{options} {}
  io_queue(io_queue&&) = delete;  // operations and tasks hold its address

  // Prepares a request with `prepare(sqe)`, which must not throw. The next turn submits it, and
  // `operation` gets the completions. Returns false after close(), when frames are destroyed.
  template <typename Prepare>
  bool start(io_operation& operation, const Prepare& prepare) {
    if (is_closed_) return false;
    ::io_uring_sqe& sqe = ring_.get_sqe();
    // An exception here would leave half a request in the queue, and the next turn would submit it.
    [&]() noexcept { prepare(sqe); }();
    ::io_uring_sqe_set_data(&sqe, &operation);
    if (completes(sqe)) ++in_flight_;
    cancel_due_ = is_stopping_;
    return true;
  }

  // The same for a request whose result no code needs, such as a cancel.
  template <typename Prepare>
  void start_unheard(const Prepare& prepare) {
    start(reminder_.unheard(), prepare);
  }

  // Makes `canceled` ask again if a cancel completes with -EALREADY: see cancel_reminder.hpp.
  void remind(canceler& canceled) noexcept { reminder_.remind(canceled); }

  // Makes room for `count` requests that must be submitted together because they are linked.
  void reserve(unsigned count) { ring_.reserve(count); }

  // --8<-- [start:turn]
  // One round of the loop: makes one system call, then delivers all that has completed.
  void turn() {
    cancel_what_is_due();
    const wake woken = wait_and_deliver();
    if (woken == wake::timeout) cancel_due_ = is_stopping_;
    failure_.rethrow();
  }
  // --8<-- [end:turn]

  // From now on every operation that has to wait is canceled, even one that starts later: it
  // completes with -ECANCELED. Operations that need not wait (close, shutdown) are still done.
  void stop() noexcept { is_stopping_ = cancel_due_ = true; }
  [[nodiscard]] bool is_stopping() const noexcept { return is_stopping_; }

  // The canceler of operations that are started under no other. It ends nothing.
  [[nodiscard]] canceler& own_canceler() noexcept { return own_canceler_; }

  // The number of final completions and expected messages that have not been delivered yet.
  [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_ + expected_; }

  // Ends the use of the ring: nothing is delivered or started any more. Returns true if the kernel
  // has no address of a frame or a buffer any more, so that frames may be destroyed.
  [[nodiscard]] bool close() noexcept {
    is_closed_ = true;
    if (end_requests(ring_, in_flight_)) in_flight_ = 0;
    return in_flight() == 0;
  }
  [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }
  [[nodiscard]] bool has_requests() const noexcept { return in_flight_ > 0; }

  // Messages go to `receiver`, which must outlive the queue or be replaced; without one (null) they
  // are dropped. A message counts as in flight only if a task has called expect_message().
  void set_receiver(message_receiver* receiver) noexcept { receiver_ = receiver; }
  void expect_message() noexcept { ++expected_; }  // it will come, whatever is canceled
  void message_has_come() noexcept { --expected_; }

  // For io_uring_register_*(3) and for the address of a message. Do not use the ring's queues.
  [[nodiscard]] ::io_uring& handle() noexcept { return ring_.handle(); }

 private:
  struct idle_canceler final : canceler {
    using canceler::canceler;
    void watch(io_operation&) noexcept override {}
  };

  // In one system call, submits the requests that were started and waits for a completion, for
  // wait_at_most() at the longest. Whatever ended the wait, calls reap() once, and deliver() for
  // each completion. Returns why the wait ended.
  wake wait_and_deliver() {
    // --8<-- [start:task-07-1]
    const wake woken = ring_.submit_and_wait(wait_at_most());
    for (const completion& done : ring_.reap()) deliver(done);
    return woken;
    // --8<-- [end:task-07-1]
  }

  // --8<-- [start:deliver]
  // Gives a completion to its operation. After the final completion the kernel is done with the
  // operation, and the coroutine that complete() resumes may destroy the operation. failure_ keeps
  // an exception, so that the other operations get their completions before turn() throws it.
  void deliver(const completion& done) {
    if ((done.user_data & message_bit) != 0) return deliver_message(done);
    auto* const operation = reinterpret_cast<io_operation*>(done.user_data);
    if ((done.flags & IORING_CQE_F_MORE) == 0) {
      --in_flight_;
      operation->unlink();
    }
    failure_.keep([&] { operation->complete(done); });
  }
  // --8<-- [end:deliver]

  void deliver_message(const completion& done) {
    if (receiver_ == nullptr) return;
    failure_.keep(
        [&] { receiver_->on_message({.word = done.user_data & ~message_bit, .value = done.res}); });
  }

  // During a stop, if a cancel is due: cancels every operation in flight, with one request.
  void cancel_what_is_due() {
    if (!cancel_due_) return;
    start_unheard(
        [](::io_uring_sqe& sqe) { ::io_uring_prep_cancel64(&sqe, 0, IORING_ASYNC_CANCEL_ANY); });
    cancel_due_ = false;
  }

  // Waits are short during a stop, because a cancel may miss a request that a kernel thread runs.
  [[nodiscard]] std::optional<std::chrono::milliseconds> wait_at_most() const noexcept {
    if (is_stopping_) return cancel_again_ms;
    return std::nullopt;
  }

  static constexpr std::chrono::milliseconds cancel_again_ms{20};

  ring ring_;
  std::size_t in_flight_ = 0;
  std::size_t expected_ = 0;  // messages
  bool is_stopping_ = false;
  bool cancel_due_ = false;  // something may be in flight that was not canceled yet
  bool is_closed_ = false;
  first_exception failure_;  // of the operations that got a completion in this turn
  message_receiver* receiver_ = nullptr;
  idle_canceler own_canceler_{*this};
  cancel_reminder<io_queue> reminder_{*this};
};

}  // namespace uring
