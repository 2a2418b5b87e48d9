// SPDX-License-Identifier: MIT
// Coroutines that wait because there is not enough of something for all of them. The line serves
// them in the order in which they came.
// Owns     the line; each place in it is in the frame that waits.
// Lifetime it must outlive every wait.
// Threads  the one that runs the queue.
// Errors   give_to_first() throws std::system_error if the ring takes no more requests.
// Rule     a T is a guard or a lease: its destructor returns what it holds, unless it is empty. So
//          nothing is lost if a frame is destroyed after it was given a T. give_to_first() does not
//          resume the coroutine itself: it starts a NOP, whose completion makes the loop resume the
//          coroutine. So a thousand short waits do not nest a thousand calls.
#pragma once

#include <liburing.h>

#include <coroutine>
#include <utility>

#include "cancel_source.hpp"
#include "io_operation.hpp"
#include "io_queue.hpp"
#include "list_link.hpp"

namespace uring {

template <typename T>
class waiting_line {
 public:
  class place;

  explicit waiting_line(io_queue& queue) noexcept : queue_{queue} {}

  [[nodiscard]] bool empty() const noexcept { return places_.empty(); }
  // The line must not be empty.
  void give_to_first(T given) { places_.front().leave(std::move(given)); }

 private:
  io_queue& queue_;
  linked_list<place> places_;
};

// T given = co_await place: `given` is empty if the source was canceled first. If `source` is null,
// nothing ends the wait early. A place is a list_link because the line keeps a list of places.
template <typename T>
class [[nodiscard("it waits when it is awaited")]] waiting_line<T>::place : public list_link {
 public:
  place(waiting_line& line, cancel_source* source) noexcept : line_{line}, source_{source} {}
  ~place() { unlink(); }  // because a frame may be destroyed while it waits

  bool await_ready() const noexcept { return source_ != nullptr && source_->is_canceled(); }
  void await_suspend(std::coroutine_handle<> awaiting) noexcept {
    continuation_ = awaiting;
    line_.places_.push_back(*this);
    if (source_ != nullptr) source_->watch(canceled_);
  }
  T await_resume() noexcept { return std::move(given_); }

 protected:
  void set_given(T given) noexcept { given_ = std::move(given); }

 private:
  friend class waiting_line;

  void leave(T given) {
    unlink();
    canceled_.unlink();
    given_ = std::move(given);
    line_.queue_.start(resumption_, [](::io_uring_sqe& sqe) { ::io_uring_prep_nop(&sqe); });
  }

  struct on_cancel final : cancel_target {
    explicit on_cancel(place& of) noexcept : whole{of} {}
    void ask_to_end() override { whole.leave({}); }
    place& whole;
  };

  struct resumption final : io_operation {
    explicit resumption(place& of) noexcept
        : io_operation{[](io_operation& self, const completion&) {
            static_cast<resumption&>(self).whole.continuation_.resume();
          }},
          whole{of} {}
    place& whole;
  };

  waiting_line& line_;
  cancel_source* source_;
  std::coroutine_handle<> continuation_;
  T given_{};
  on_cancel canceled_{*this};
  resumption resumption_{*this};
};

}  // namespace uring
