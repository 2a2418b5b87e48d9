// SPDX-License-Identifier: MIT
// A canceler may end operations before they are done. Each operation is started under one: under
// its queue's own, which ends nothing, or from chapter 08 on under one that can be asked to.
// Lifetime it must outlive every operation that was started under it, and its queue outlives it.
// Threads  the one that runs the queue.
#pragma once

#include "list_link.hpp"

namespace uring {

class io_operation;
class io_queue;

// Its place in a list is for cancel_reminder.hpp.
class canceler : public list_link {
 public:
  explicit canceler(io_queue& queue) noexcept : queue_{queue} {}
  canceler(canceler&&) = delete;  // io_handles hold its address

  [[nodiscard]] io_queue& queue() const noexcept { return queue_; }
  [[nodiscard]] bool is_canceled() const noexcept { return is_canceled_; }

  // `started` is in flight. This may put it into a list, which it leaves at its final completion.
  virtual void watch(io_operation& started) noexcept = 0;

  // It was canceled, and something is in flight nevertheless.
  [[nodiscard]] virtual bool waits_for_an_end() const noexcept { return false; }
  virtual void ask_again() {}

 protected:
  ~canceler() { unlink(); }

  bool is_canceled_ = false;  // once true, for ever: nothing is started under it any more

 private:
  io_queue& queue_;
};

}  // namespace uring
