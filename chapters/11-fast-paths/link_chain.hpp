// SPDX-License-Identifier: MIT
// Requests, each of which begins when the one before it has succeeded. All of them are submitted
// together, so the program need not wake up in between.
// Owns     nothing; linked.hpp has the requests, and an operation for each.
// Lifetime it lives in the awaiting frame, which goes on when all requests have ended, because
//          until then the kernel holds their addresses.
// Threads  the one that runs the queue.
// Errors   the first request that fails, or moves less than it was asked to, breaks the chain:
//          those after it end with -ECANCELED and have done nothing. A recv or send that is short
//          breaks it only with MSG_WAITALL.
// Rule     a chain ends where a submission ends, so all of its requests are submitted together.
//          A chain of hard links goes on after each request that has begun, whatever its result. So
//          a cancel ends the request that is under way, and not those after it.
// See      io_uring_enter(2): IOSQE_IO_LINK, IOSQE_IO_HARDLINK, IOSQE_CQE_SKIP_SUCCESS
#pragma once

#include <liburing.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <span>

#include "io_handle.hpp"
#include "io_operation.hpp"
#include "todo.hpp"

namespace uring {

// The length of the longest chain. A chain must fit into the free entries of the submission queue,
// and with SQPOLL wait_for_poller() waits only until half of the queue is free.
[[nodiscard]] inline std::size_t chain_requests_max(io_queue& queue) noexcept {
  const unsigned entries = queue.handle().sq.ring_entries;
  return std::max(entries / 2, std::min(entries, 2U));
}

// Serves every kind of chain: starts its requests, and resumes the frame at the last completion.
class link_chain {
 public:
  // If the chain is canceled before it begins, no part is started, and so `done` keeps -ECANCELED.
  struct part : io_operation {
    part() noexcept : io_operation{&on_completion} {}

    static void on_completion(io_operation& self, const completion& done) {
      assert((done.flags & IORING_CQE_F_MORE) == 0 && "a request of a chain completes once");
      auto& completed = static_cast<part&>(self);
      completed.done = done;
      completed.whole->one_completed(completed);
    }

    link_chain* whole = nullptr;
    completion done{.user_data = 0, .res = -ECANCELED, .flags = 0};
  };

  // `links` are the flags of every request but the last: IOSQE_IO_HARDLINK, or IOSQE_IO_LINK, to
  // which you may add IOSQE_CQE_SKIP_SUCCESS.
  explicit link_chain(unsigned links) noexcept : links_{static_cast<std::uint8_t>(links)} {}
  link_chain(link_chain&&) = delete;  // its parts hold its address

  // Starts a request for each of `parts`, in order; `prepare(i, sqe)` prepares the i-th. Returns
  // false if the source is canceled already. In this case no part is started.
  template <typename Prepare>
  bool start(const io_handle& io, std::span<part> parts, std::coroutine_handle<> continuation,
             const Prepare& prepare) {
    assert(!parts.empty() && parts.size() <= chain_requests_max(io.queue()));
    continuation_ = continuation;
    parts_ = parts;
    expected_ = (links_ & IOSQE_CQE_SKIP_SUCCESS) != 0 ? 1 : parts.size();
    for (part& each : parts) each.whole = this;
    return start_linked(io, prepare);
  }

  // The index of the request that has completed last. If only one completes, it is that one.
  [[nodiscard]] std::size_t answered() const noexcept { return answered_; }

 private:
  // All requests of the chain must be submitted together. But if the queue is full, io.start()
  // submits it, to make room. So first make room for all of parts_, with io.queue().reserve(). Then
  // start a request for each part, with io.start(part, …) and a function that prepares the SQE: the
  // function calls prepare(i, sqe), and adds links_ to sqe.flags. The last request must not get
  // links_, because it would be linked to the request that is submitted next. If io.start() returns
  // false, immediately return false; otherwise return true at the end.
  template <typename Prepare>
  bool start_linked(const io_handle& io, const Prepare& prepare) {
    COURSE_TODO("11.2");
  }

  // The last of the completions resumes the frame. Requests that succeeded without a completion
  // leave the canceler's list here.
  void one_completed(const part& completed) {
    answered_ = static_cast<std::size_t>(&completed - parts_.data());
    if (--expected_ > 0) return;
    for (part& each : parts_) each.unlink();
    continuation_.resume();
  }

  std::uint8_t links_;
  std::span<part> parts_;
  std::size_t expected_ = 0;  // completions that have not come
  std::size_t answered_ = 0;
  std::coroutine_handle<> continuation_;
};

}  // namespace uring
