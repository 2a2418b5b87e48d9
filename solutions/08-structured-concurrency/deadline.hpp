// SPDX-License-Identifier: MIT
// A request with a time limit. It is submitted together with a timeout that is linked to it.
// Owns     the two operations and their timespec.
// Lifetime it lives in the awaiting frame. The frame goes on only when both operations have
//          completed, because until then the kernel has their addresses.
// Threads  the one that runs the queue.
// Errors   the request's own result, or -ETIME if the deadline ended the request. If the request
//          had moved some bytes by then, the result is their count, so that no byte is lost.
// Rule     not for multishot requests (see chapter 10's next_within.hpp). Not for IOSQE_ASYNC: then
//          a kernel thread may miss the timeout's cancel, and only our own cancels are repeated.
// See      io_uring_prep_link_timeout(3)
#pragma once

#include <liburing.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <coroutine>
#include <optional>

#include "io_operation.hpp"
#include "io_request.hpp"
#include "operations.hpp"
#include "todo.hpp"

namespace uring {

// The parts that do not depend on the request: two operations, and how many have not completed.
class deadline_operations {
 public:
  // If the request's source is canceled already, no part is started: `done` keeps -ECANCELED.
  struct part : io_operation {
    explicit part(deadline_operations& of) noexcept : io_operation{&on_completion}, whole{of} {}

    static void on_completion(io_operation& self, const completion& done) {
      assert((done.flags & IORING_CQE_F_MORE) == 0 && "a multishot request can have no deadline");
      auto& completed = static_cast<part&>(self);
      completed.done = done;
      completed.whole.one_completed();
    }

    deadline_operations& whole;
    completion done{.user_data = 0, .res = -ECANCELED, .flags = 0};
  };

  void expect(unsigned parts, std::coroutine_handle<> continuation) noexcept {
    in_flight_ = parts;
    continuation_ = continuation;
  }

  [[nodiscard]] part& request() noexcept { return request_; }
  [[nodiscard]] part& deadline() noexcept { return deadline_; }

  // How the request ended. If the deadline ended the request, changes ended.res to -ETIME. The
  // deadline's own res, deadline_.done.res, is -ECANCELED if the request ended first, and any other
  // number if the deadline fired. The request's res is -ECANCELED or -EINTR if the request was
  // ended early. Any other res is the request's own, and stays.
  [[nodiscard]] completion result() const noexcept {
    completion ended = request_.done;
    // --8<-- [start:task-08-4b]
    const bool ended_early = ended.res == -ECANCELED || ended.res == -EINTR;
    const bool deadline_fired = deadline_.done.res != -ECANCELED;
    if (ended_early && deadline_fired) ended.res = -ETIME;
    // --8<-- [end:task-08-4b]
    return ended;
  }

 private:
  // One of the in_flight_ operations has completed. The request or its timeout may be first. The
  // last one resumes the frame, continuation_.
  void one_completed() {
    // --8<-- [start:task-08-4c]
    if (--in_flight_ > 0) return;
    continuation_.resume();
    // --8<-- [end:task-08-4c]
  }

  std::coroutine_handle<> continuation_;
  unsigned in_flight_ = 0;
  part request_{*this};
  part deadline_{*this};
};

template <typename Prepare>
class [[nodiscard("submitted when awaited")]] deadline_awaiter {
 public:
  deadline_awaiter(const io_request<Prepare>& request,
                   std::optional<std::chrono::nanoseconds> at_most) noexcept
      : request_{request} {
    constexpr std::chrono::nanoseconds none{0};
    if (at_most.has_value()) limit_ = to_timespec(std::max(*at_most, none));
  }
  deadline_awaiter(deadline_awaiter&&) = delete;  // the kernel holds addresses of its parts

  bool await_ready() const noexcept { return false; }

  bool await_suspend(std::coroutine_handle<> awaiting) {
    parts_.expect(limit_.has_value() ? 2 : 1, awaiting);
    if (limit_.has_value()) return start_both();
    return request_.io.start(parts_.request(), request_.prepare);
  }

  auto await_resume() const {
    return result_of(request_.prepare, request_.io.as_canceled(parts_.result()));
  }

 private:
  // Starts the request, then its timeout, so that one system call submits both. Returns true.
  // request_.prepare fills in the request's SQE, flags included. The flag IOSQE_IO_LINK links the
  // request to the next one in the queue, which must be the timeout. Prepare the timeout with
  // io_uring_prep_link_timeout(), with the address of *limit_ and no flags. If request_.io.start()
  // refuses the request, starts no timeout and returns false.
  bool start_both() {
    io_queue& queue = request_.io.queue();
    // --8<-- [start:task-08-4]
    queue.reserve(2);
    const bool started = request_.io.start(parts_.request(), [this](::io_uring_sqe& sqe) {
      request_.prepare(sqe);
      sqe.flags |= IOSQE_IO_LINK;
    });
    if (!started) return false;
    queue.start(parts_.deadline(),
                [this](::io_uring_sqe& sqe) { ::io_uring_prep_link_timeout(&sqe, &*limit_, 0); });
    return true;
    // --8<-- [end:task-08-4]
  }

  io_request<Prepare> request_;
  std::optional<::__kernel_timespec> limit_;  // empty: no deadline
  deadline_operations parts_;
};

// co_await with_deadline(recv_op(…), at_most). If `at_most` is empty, there is no deadline.
template <typename Prepare>
auto with_deadline(const io_request<Prepare>& request,
                   std::optional<std::chrono::nanoseconds> at_most) noexcept {
  return deadline_awaiter<Prepare>{request, at_most};
}

}  // namespace uring
