// SPDX-License-Identifier: MIT
// A canceler may end operations early. Every operation is started under a canceler. This is either
// the queue's own canceler, which ends nothing, or a cancel_source (from chapter 08 on).
// Lifetime it must outlive every operation that was started under it. Its queue must outlive it.
// Threads  the one that runs the queue.
#pragma once

#include "list_link.hpp"

namespace uring {

class io_operation;
class io_queue;

// It is a list_link because cancel_reminder.hpp keeps a list of cancelers.
class canceler : public list_link {
 public:
  explicit canceler(io_queue& queue) noexcept : queue_{queue} {}
  canceler(canceler&&) = delete;  // io_handles hold its address

  [[nodiscard]] io_queue& queue() const noexcept { return queue_; }
  [[nodiscard]] bool is_canceled() const noexcept { return is_canceled_; }

  // May put `started`, which is in flight, into a list. The final completion takes it out again.
  virtual void watch(io_operation& started) noexcept = 0;

  // True if this was canceled and one of its operations is still in flight.
  [[nodiscard]] virtual bool waits_for_an_end() const noexcept { return false; }
  virtual void ask_again() {}  // requests the cancel once more, see cancel_reminder.hpp

 protected:
  ~canceler() { unlink(); }

  bool is_canceled_ = false;  // once true, it stays true, so new operations are refused

 private:
  io_queue& queue_;
};

}  // namespace uring
