// SPDX-License-Identifier: MIT
// A request that can be asked to end before it is done: by a cancel_source, or by a deadline.
// Owns     the request, its timespec, and the requests that end it.
// Lifetime it lives in the awaiting frame. The frame goes on only when the completions of all its
//          requests have come: until then the kernel knows their addresses.
// Threads  the one that runs the context.
// Errors   an io_result: the request's own; -ETIME if the deadline ended it; -ECANCELED if the
//          source did. Whatever it had achieved by then wins: no byte that was moved is lost.
//          std::system_error if the ring takes no more requests.
// Rule     the request and its deadline are linked, so both are submitted together or not at all.
//          One completion each: not for multishot requests.
// See      io_uring_prep_link_timeout(3), io_uring_prep_cancel(3)
#pragma once

#include <liburing.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <optional>

#include "cancel_source.hpp"
#include "io_context.hpp"
#include "io_operation.hpp"
#include "io_request.hpp"
#include "io_result.hpp"
#include "operations.hpp"
#include "todo.hpp"

namespace uring {

// What does not depend on the request: its parts, and how many have not completed.
class bounded_operation : public cancel_target {
 protected:
  // One of our requests: what its user_data points at.
  struct part : io_operation {
    explicit part(bounded_operation& of) noexcept : io_operation{&on_completion}, whole{of} {}

    static void on_completion(io_operation& self, const completion& done) {
      assert((done.flags & IORING_CQE_F_MORE) == 0 && "a multishot request cannot be bounded");
      auto& completed = static_cast<part&>(self);
      completed.res = done.res;
      completed.whole.one_completed();
    }

    bounded_operation& whole;
    std::int32_t res = 0;
  };

  bounded_operation(io_context& context, cancel_source* source) noexcept
      : context_{context}, source_{source} {}
  ~bounded_operation() = default;

  [[nodiscard]] bool was_canceled() const noexcept {
    return source_ != nullptr && source_->is_canceled();
  }

  // How it ended. deadline_.res is -ECANCELED if the request was faster, and anything else if the
  // deadline fired. That is -ETIME only if it ended the request early: -ECANCELED, or -EINTR.
  [[nodiscard]] io_result result() const noexcept {
    if (!limit_.has_value()) return own_result();
    COURSE_TODO("08.4");
  }

  // A worker of the kernel's that is asked to end is interrupted: that is canceled, too.
  [[nodiscard]] io_result own_result() const noexcept {
    return io_result{request_.res == -EINTR && was_canceled() ? -ECANCELED : request_.res};
  }

  io_context& context_;
  cancel_source* source_;  // null: nobody can cancel it
  std::coroutine_handle<> awaiting_;
  unsigned in_flight_ = 0;  // of the three below
  part request_{*this};
  part deadline_{*this};
  part cancel_{*this};
  std::optional<::__kernel_timespec> limit_;  // without: no deadline

 private:
  // The frame goes on after the last, whichever it is. Nobody knows us then, our source neither.
  void one_completed() {
    COURSE_TODO("08.3");
  }

  // Cancels request_ by its address. That is a request, too: its completion goes to cancel_.
  void ask_to_end() override {
    COURSE_TODO("08.3");
  }
};

template <typename Prepare>
class [[nodiscard("submitted when awaited")]] bounded_io final : bounded_operation {
 public:
  bounded_io(const io_request<Prepare>& request, std::optional<std::chrono::nanoseconds> at_most,
             cancel_source* source) noexcept
      : bounded_operation{request.context, source}, prepare_{request.prepare} {
    constexpr std::chrono::nanoseconds none{0};
    if (at_most.has_value()) limit_ = to_timespec(std::max(*at_most, none));
  }

  bool await_ready() const noexcept { return false; }

  // Suspends, unless the source was canceled before.
  bool await_suspend(std::coroutine_handle<> awaiting) {
    if (was_canceled()) {
      request_.res = -ECANCELED;
      deadline_.res = -ECANCELED;
      return false;
    }
    awaiting_ = awaiting;
    limit_.has_value() ? submit_with_deadline() : context_.start(request_, prepare_);
    in_flight_ = limit_.has_value() ? 2 : 1;
    if (source_ != nullptr) source_->link(*this);
    return true;
  }

  io_result await_resume() const noexcept { return result(); }

 private:
  // The request, linked to a timeout for it. Both in one submission: reserve() first.
  void submit_with_deadline() {
    COURSE_TODO("08.4");
  }

  Prepare prepare_;
};

// The request, until `source` is canceled.
template <typename Prepare>
auto cancelable(const io_request<Prepare>& request, cancel_source& source) noexcept {
  return bounded_io<Prepare>{request, std::nullopt, &source};
}

template <typename Prepare>
auto with_deadline(const io_request<Prepare>& request, std::chrono::nanoseconds at_most) noexcept {
  return bounded_io<Prepare>{request, at_most, nullptr};
}

// Both; -ETIME and -ECANCELED tell which. Without `at_most` there is no deadline.
template <typename Prepare>
auto with_deadline(const io_request<Prepare>& request,
                   std::optional<std::chrono::nanoseconds> at_most,
                   cancel_source& source) noexcept {
  return bounded_io<Prepare>{request, at_most, &source};
}

}  // namespace uring
