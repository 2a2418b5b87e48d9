// SPDX-License-Identifier: MIT
// A submission queue and a completion queue, with liburing. The ring makes room in a full queue.
// Owns     the ring.
// Lifetime memory that a request points at must live until the request's completion was reaped. For
//          a request that cancel_all() ends, it is enough if the memory outlives the ring.
// Threads  the one that made or enabled the ring. With ring_mode::defer, other threads get EEXIST.
// Errors   std::system_error if the ring cannot be made, or if a system call fails for good. The
//          `res` of a completion says how its request ended.
// Rule     get_sqe() may submit earlier requests. For requests that must stay together, such as a
//          linked chain, first reserve() room for all of them.
// See      io_uring_setup(2), io_uring_enter(2), io_uring_submit_and_wait_timeout(3)
#pragma once

#include <liburing.h>

#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "errors.hpp"
#include "ring_setup.hpp"
#include "todo.hpp"

namespace uring {

struct completion {  // a CQE, copied out of the queue
  std::uint64_t user_data;
  std::int32_t res;  // signed: a count or a descriptor, or -errno
  std::uint32_t flags;
};

// Why a wait ended. Only `completions` promises that reap() has something. A wait that submitted
// and was then interrupted may say timeout, so code that waits for a time must look at the clock.
enum class wake { completions, timeout, signal, overloaded };

class ring {
 public:
  explicit ring(const ring_options& options);
  ring(ring&&) = delete;  // two copies of its indices would hand out the same SQE twice
  ~ring();

  // Returns an SQE: call an io_uring_prep_* function, then set user_data. The next submit takes it.
  [[nodiscard]] ::io_uring_sqe& get_sqe() {
    reserve(1);
    return *::io_uring_get_sqe(&ring_);
  }

  // Makes room for `count` SQEs, so that the next `count` calls to get_sqe() do not submit. Calls
  // submit() and looks again, at most attempts_max times, because one call may not be enough. If
  // there is still no room, throws: common::throw_error(EAGAIN, "the submission queue stays full").
  void reserve(unsigned count) {
    assert(count <= ring_.sq.ring_entries && "the submission queue is smaller than that");
    if (::io_uring_sq_space_left(&ring_) >= count) return;
    // --8<-- [start:task-05-4]
    for (int attempt = 0; attempt < attempts_max; ++attempt) {
      submit();
      if (::io_uring_sq_space_left(&ring_) >= count) return;
    }
    common::throw_error(EAGAIN, "the submission queue stays full");
    // --8<-- [end:task-05-4]
  }

  // Submits the requests that were prepared, and waits for a completion, in one system call.
  [[nodiscard]] wake submit_and_wait(std::optional<std::chrono::milliseconds> at_most = {});

  // Returns copies of all completions that are there or that hold_completions() has kept. Because
  // they are copies, the code that handles them may submit. They stay valid until the next reap().
  [[nodiscard]] std::span<const completion> reap() {
    reaped_.clear();
    std::swap(reaped_, held_);
    copy_out(reaped_);
    return reaped_;
  }

  void cancel_all() noexcept { cancel_everything(ring_); }
  [[nodiscard]] ::io_uring& handle() noexcept { return ring_; }  // for io_uring_register_*(3)

 private:
  static constexpr int attempts_max = 1000;
  static constexpr std::chrono::milliseconds memory_pause_ms{1};

  // Hands all prepared requests to the kernel, without a wait for completions.
  void submit() {
    hand_over();
    if ((ring_.flags & IORING_SETUP_SQPOLL) != 0) wait_for_poller(ring_);  // the poller makes room
  }

  // Calls io_uring_submit(&ring_) once. The result is a count or -errno. A 0 is no failure, because
  // with sqpoll the kernel's thread may have taken everything. After -EINTR, -EBUSY and -EAGAIN,
  // returns, and the caller tries again. The page says after which of them hand_over() first calls
  // hold_completions(). Throws any other error: common::throw_error(result, "io_uring_enter").
  void hand_over() {
    // --8<-- [start:task-05-4b]
    const int submitted = ::io_uring_submit(&ring_);
    if (submitted == -EBUSY || submitted == -EAGAIN) {
      hold_completions();
    } else if (submitted < 0 && submitted != -EINTR) {
      common::throw_error(submitted, "io_uring_enter");
    }
    // --8<-- [end:task-05-4b]
  }

  // Fetches completions and keeps them for the next reap(), so that the kernel can go on.
  void hold_completions() {
    ::io_uring_get_events(&ring_);
    copy_out(held_);
    std::this_thread::sleep_for(memory_pause_ms);
  }

  void copy_out(std::vector<completion>& to) {
    const std::size_t before = to.size();
    unsigned head = 0;
    ::io_uring_cqe* cqe = nullptr;
    io_uring_for_each_cqe(&ring_, head, cqe) to.push_back({cqe->user_data, cqe->res, cqe->flags});
    ::io_uring_cq_advance(&ring_, static_cast<unsigned>(to.size() - before));
  }

  ::io_uring ring_{};
  std::vector<completion> reaped_;  // what reap() returned last
  std::vector<completion> held_;    // fetched while making room, not yet returned
};

inline ring::ring(const ring_options& options) {
  set_up(ring_, options);
  reaped_.reserve(ring_.cq.ring_entries);
  held_.reserve(ring_.cq.ring_entries);
}

inline ring::~ring() {
  // Closing the descriptor cancels, too, but later, and until then the kernel could write.
  cancel_all();
  ::io_uring_queue_exit(&ring_);
}

inline wake ring::submit_and_wait(std::optional<std::chrono::milliseconds> at_most) {
  if (!held_.empty()) {  // the next completion may come only after these are handled
    submit();
    return wake::completions;
  }
  ::__kernel_timespec limit{};
  if (at_most) {
    limit.tv_sec = at_most->count() / 1000;
    limit.tv_nsec = at_most->count() % 1000 * 1'000'000;
  }
  ::io_uring_cqe* first = nullptr;
  const int result =
      ::io_uring_submit_and_wait_timeout(&ring_, &first, 1, at_most ? &limit : nullptr, nullptr);
  if (result >= 0) {  // the number of submissions, which hides how the wait ended
    if (::io_uring_cq_ready(&ring_) > 0) return wake::completions;
    return at_most ? wake::timeout : wake::signal;
  }
  switch (-result) {
    case ETIME:
      return wake::timeout;
    case EINTR:
      return wake::signal;
    case EBUSY:  // completions overflowed, and there is no room for all of them: reap first
      return wake::completions;
    case EAGAIN:  // no memory for a request now; requests not taken stay in the queue
      hold_completions();
      return wake::overloaded;
    default:
      common::throw_error(result, "io_uring_enter");
  }
}

}  // namespace uring
