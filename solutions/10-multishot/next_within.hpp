// SPDX-License-Identifier: MIT
// A wait for the next item of a stream. A cancel or a deadline can end the wait early.
// Lifetime the stream and the source must outlive the wait.
// Threads  the one that runs the queue.
// Errors   the item's result: -ECANCELED or -ETIME if the wait has ended before an item came.
// Rule     only the wait ends. The request stays in flight, and a later wait gets the items that
//          come after this wait, so that none is lost. One request may serve many waits, each with
//          a limit of its own.
#pragma once

#include <liburing.h>

#include <cerrno>
#include <chrono>
#include <coroutine>
#include <utility>

#include "cancel_source.hpp"
#include "io_operation.hpp"
#include "operations.hpp"
#include "stream.hpp"
#include "task.hpp"
#include "when_any.hpp"

namespace uring {

// co_await patient_next{stream, patience}: like stream.next(), but a cancel of `patience` ends the
// wait. The cancel starts a NOP, and the NOP's completion resumes the coroutine.
template <typename Prepare>
class [[nodiscard("it waits when it is awaited")]] patient_next final : cancel_target,
                                                                        io_operation {
 public:
  using item = typename stream<Prepare>::item;

  patient_next(stream<Prepare>& from, cancel_source& patience) noexcept
      : io_operation{&on_resumption}, from_{from}, patience_{patience} {}

  bool await_ready() const noexcept { return from_.size() > 0 || patience_.is_canceled(); }
  bool await_suspend(std::coroutine_handle<> awaiting) {
    if (!from_.wait(awaiting)) return false;
    continuation_ = awaiting;
    patience_.watch(static_cast<cancel_target&>(*this));
    return true;
  }
  item await_resume() {
    cancel_target::unlink();
    return was_canceled_ ? from_.failed_with(ECANCELED) : from_.given();
  }

 private:
  void ask_to_end() override {
    was_canceled_ = true;
    from_.consumer_ = nullptr;  // from here on the stream keeps its items for a later wait
    from_.queue().start(*this, [](::io_uring_sqe& sqe) { ::io_uring_prep_nop(&sqe); });
  }

  static void on_resumption(io_operation& self, const completion&) {
    static_cast<patient_next&>(self).continuation_.resume();
  }

  stream<Prepare>& from_;
  cancel_source& patience_;
  std::coroutine_handle<> continuation_;
  bool was_canceled_ = false;
};

template <typename Prepare>
task<typename stream<Prepare>::item> next_unless_canceled(stream<Prepare>& from,
                                                          cancel_source& patience) {
  auto got = co_await patient_next<Prepare>{from, patience};
  co_return got;
}

template <typename Prepare>
task<typename stream<Prepare>::item> too_late(stream<Prepare>& from, cancel_source& patience,
                                              std::chrono::nanoseconds at_most) {
  const io_result ended = co_await timeout_op(patience, at_most);
  co_return from.failed_with(ended.error());
}

// Returns the next item, or one with -ETIME if none has come within `at_most`.
template <typename Prepare>
task<typename stream<Prepare>::item> next_within(stream<Prepare>& from,
                                                 std::chrono::nanoseconds at_most) {
  if (from.size() > 0) co_return from.take();
  cancel_source patience{from.queue()};
  auto first = co_await when_any(patience, next_unless_canceled(from, patience),
                                 too_late(from, patience, at_most));
  co_return std::move(first.value);
}

}  // namespace uring
