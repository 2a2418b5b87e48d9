// SPDX-License-Identifier: MIT
// A cancel that completes with -EALREADY may have done nothing, as when a worker thread of the
// kernel ran the request, and then left it waiting. So this class cancels the request again later.
// Owns     the operation that receives the results of cancels, and a timer.
// Lifetime it is a member of its queue.
// Threads  the one that runs the queue.
// Rule     it makes requests only after a cancel has completed with -EALREADY.
// See      io_uring_prep_cancel(3)
#pragma once

#include <liburing.h>

#include <cerrno>
#include <chrono>

#include "canceler.hpp"
#include "io_operation.hpp"
#include "list_link.hpp"

namespace uring {

template <typename Queue>
class cancel_reminder {
 public:
  static constexpr std::chrono::milliseconds again_in{20};

  explicit cancel_reminder(Queue& queue) noexcept : queue_{queue} {}

  // The operation for cancels, and for other requests whose result no code needs.
  [[nodiscard]] io_operation& unheard() noexcept { return answer_; }

  // Calls canceled.ask_again(), if needed, until its operations end or `canceled` is destroyed.
  void remind(canceler& canceled) noexcept { canceled_.push_back(canceled); }

 private:
  struct part final : io_operation {
    part(cancel_reminder& of, function* on_completion) noexcept
        : io_operation{on_completion}, whole{of} {}
    cancel_reminder& whole;
  };

  static void on_answer(io_operation& self, const completion& done) {
    if (done.res == -EALREADY) static_cast<part&>(self).whole.start_timer();
  }

  void start_timer() {
    bool in_vain = false;
    canceled_.for_each([&](const canceler& each) { in_vain |= each.waits_for_an_end(); });
    if (!in_vain || is_started_) return;
    is_started_ = queue_.start(
        timer_, [this](::io_uring_sqe& sqe) { ::io_uring_prep_timeout(&sqe, &in_, 0, 0); });
  }

  static void on_timer(io_operation& self, const completion&) {
    cancel_reminder& of = static_cast<part&>(self).whole;
    of.is_started_ = false;
    of.canceled_.for_each([](canceler& each) {
      if (each.waits_for_an_end()) each.ask_again();
    });
  }

  Queue& queue_;
  linked_list<canceler> canceled_;
  part answer_{*this, &on_answer};
  part timer_{*this, &on_timer};
  bool is_started_ = false;
  ::__kernel_timespec in_{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds{again_in}.count()};
};

}  // namespace uring
