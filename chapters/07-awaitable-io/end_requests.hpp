// SPDX-License-Identifier: MIT
// Ends what is in flight on a ring, without delivering it, so that memory may be given back.
// Owns     nothing.
// Threads  the one that runs the ring.
// Errors   false if a request is still in flight after last_completions_in_s.
// Rule     only the final completion of a request shows that the kernel uses its memory no longer:
//          a cancel does not wait for a thread of the kernel that reads or writes a file.
// See      io_uring_register_sync_cancel(3)
#pragma once

#include <liburing.h>

#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <thread>

#include "message.hpp"
#include "ring.hpp"

namespace uring {

inline constexpr std::chrono::seconds last_completions_in_s{1};

// With IOSQE_CQE_SKIP_SUCCESS a request completes only if it fails, and then the rest of its chain
// does not complete. The last request, without the flag, is counted for the whole chain.
[[nodiscard]] inline bool completes(const ::io_uring_sqe& sqe) noexcept {
  if ((sqe.flags & IOSQE_CQE_SKIP_SUCCESS) == 0) return true;
  assert((sqe.flags & IOSQE_IO_LINK) != 0 && "nothing would tell how it ended");
  return false;
}

// How many requests for which completes() is true the kernel will never take, because nobody
// submits any more. But the kernel's thread of SQPOLL may still take those that were submitted.
[[nodiscard]] inline std::size_t count_unsubmitted(const ::io_uring& ring) noexcept {
  const bool has_poller = (ring.flags & IORING_SETUP_SQPOLL) != 0;
  unsigned at = has_poller ? ring.sq.sqe_head : ring.sq.sqe_tail - ::io_uring_sq_ready(&ring);
  std::size_t count = 0;
  for (; at != ring.sq.sqe_tail; ++at) {
    if (completes(ring.sq.sqes[at & ring.sq.ring_mask])) ++count;
  }
  return count;
}

// Cancels every request, and waits for the final completions of those that were submitted.
// `in_flight` is the number of requests that complete and have no final completion yet.
[[nodiscard]] inline bool end_requests(ring& ending, std::size_t in_flight) noexcept {
  const auto give_up_at = std::chrono::steady_clock::now() + last_completions_in_s;
  while (in_flight > count_unsubmitted(ending.handle())) {
    if (std::chrono::steady_clock::now() >= give_up_at) return false;
    ending.cancel_all();
    // Brings completions that were deferred or have overflowed. EBADFD: the ring was never enabled.
    if (::io_uring_get_events(&ending.handle()) == -EBADFD) return true;
    for (const completion& done : ending.reap()) {
      const bool is_final = (done.flags & IORING_CQE_F_MORE) == 0;
      if (is_final && (done.user_data & message_bit) == 0) --in_flight;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

}  // namespace uring
