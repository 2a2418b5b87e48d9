// SPDX-License-Identifier: MIT
// Makes a ring in the mode that was asked for, or in the next simpler one that the kernel grants.
// cancel_everything() cancels the requests that are in flight on a ring.
// Owns     nothing; the caller owns the ring, and ends it with io_uring_queue_exit().
// Threads  any; a ring of ring_mode::defer belongs to the thread that sets it up.
// Errors   refused, with the cause and what to do, if the kernel grants no ring at all. If it lacks
//          a mode, the next simpler mode is tried, and a line in the log says so.
// Rule     try a mode to learn whether the kernel supports it; never infer this from the version.
// See      io_uring_setup(2), io_uring_queue_init_params(3)
#pragma once

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "errors.hpp"
#include "log.hpp"
#include "refused.hpp"
#include "ring_options.hpp"

namespace uring {

inline constexpr unsigned sqpoll_idle_ms = 1;  // the poller sleeps after this time without work
inline constexpr int poller_waits_max = 50;
inline constexpr std::chrono::microseconds poller_pause_us{100};

[[nodiscard]] constexpr unsigned setup_flags(ring_mode mode) noexcept {
  switch (mode) {
    case ring_mode::plain:
      return 0;
    case ring_mode::coop:
      return IORING_SETUP_COOP_TASKRUN;
    case ring_mode::defer:
      return IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    case ring_mode::sqpoll:
      return IORING_SETUP_SQPOLL;
  }
  return 0;
}

// The mode to try when the kernel does not have `mode`.
[[nodiscard]] constexpr std::optional<ring_mode> simpler(ring_mode mode) noexcept {
  if (mode == ring_mode::plain) return std::nullopt;
  return mode == ring_mode::defer ? ring_mode::coop : ring_mode::plain;
}

// Calls `try_mode`, which returns 0 or -errno, with simpler and simpler modes until it returns 0.
// After EINVAL (the kernel lacks the flags) or EPERM (we may not use them) a simpler mode may work.
// Any other error would be the same in every mode, so it is thrown.
template <typename TryMode>
ring_mode set_up_some_mode(ring_mode wanted, const TryMode& try_mode) {
  for (ring_mode mode = wanted;;) {
    const int result = try_mode(mode);
    if (result == 0) return mode;
    const auto next = simpler(mode);
    if (!next || (result != -EINVAL && result != -EPERM)) throw refused{"io_uring_setup", result};
    common::log(std::string{"--ring-flags "} + name_of(mode) + ": the kernel says " +
                common::describe_errno(result) + "; going on with " + name_of(*next));
    mode = *next;
  }
}

inline ring_mode set_up(::io_uring& ring, const ring_options& options) {
  return set_up_some_mode(options.mode, [&](ring_mode mode) {
    ::io_uring_params params{};
    params.flags = IORING_SETUP_CQSIZE | setup_flags(mode);
    if (options.is_disabled) params.flags |= IORING_SETUP_R_DISABLED;
    params.cq_entries = std::max(options.cq_entries, options.sq_entries);
    params.sq_thread_idle = sqpoll_idle_ms;  // read with SQPOLL only
    return ::io_uring_queue_init_params(options.sq_entries, &ring, &params);
  });
}

// The poller is the kernel's thread of ring_mode::sqpoll: it fetches submissions when it runs.
// io_uring_sqring_wait() returns as soon as one entry is free, and a caller that needs more
// would use up its attempts before the poller runs again. So this waits, with a limit, until half
// of the queue is free, and in a small queue until two are free, because a linked pair needs two.
inline void wait_for_poller(::io_uring& ring) {
  ::io_uring_sqring_wait(&ring);
  const unsigned wanted = std::min(std::max(ring.sq.ring_entries / 2, 2U), ring.sq.ring_entries);
  const auto is_too_full = [&ring, wanted] { return ::io_uring_sq_space_left(&ring) < wanted; };
  for (int waits = 0; waits < poller_waits_max && is_too_full(); ++waits) {
    std::this_thread::sleep_for(poller_pause_us);
  }
}

// Cancels every request that is in flight. A request that waits for a socket, a pipe or a timer no
// longer uses its memory when this returns. But a thread of the kernel that reads or writes a file
// goes on, and so does a zero-copy send, so code with such requests waits for their completions.
// With SQPOLL, requests that the kernel's thread has not taken yet are not canceled.
inline void cancel_everything(::io_uring& ring) noexcept {
  ::io_uring_sync_cancel_reg everything{};
  everything.flags = IORING_ASYNC_CANCEL_ANY;
  everything.timeout = {.tv_sec = -1, .tv_nsec = -1};  // no limit: with ANY the call does not wait
  ::io_uring_register_sync_cancel(&ring, &everything);
}

}  // namespace uring
