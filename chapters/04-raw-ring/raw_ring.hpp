// SPDX-License-Identifier: MIT
// Both queues of a ring: take an SQE, publish it, enter the kernel, reap what completed.
// Owns     nothing: a ring_memory owns the memory and the descriptor behind the view.
// Lifetime it must not outlive that memory. A request's buffer must live until its CQE is reaped.
// Threads  one: no other thread of the program touches this ring. The kernel does so at any time.
// Errors   a temporary failure (a signal, a full CQ, too little memory) is a value of `entered`.
//          Any other failure is thrown as refused.
// Rule     each index has one writer. Our own indices are members, and are stored with release,
//          after the entries that they hand over. The kernel's are loaded with acquire, before we
//          touch the entries.
// See      io_uring(7), io_uring_enter(2)
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "refused.hpp"
#include "ring_abi.hpp"
#include "ring_memory.hpp"
#include "system_calls.hpp"
#include "todo.hpp"

namespace uring {

// A CQE, copied out of the ring.
struct raw_completion {
  std::uint64_t user_data = 0;
  std::int32_t res = 0;  // what the system call would have returned, or -errno
  std::uint32_t flags = 0;
};

// How a call to io_uring_enter ended, if the call may be made again. Even ok does not promise the
// CQEs that were waited for, because a signal or a bad SQE may end the call after SQEs were taken.
enum class entered {
  ok,               // 0 or more SQEs were taken
  interrupted,      // EINTR: a signal ended the wait
  cq_is_full,       // EBUSY: the CQ is full; the kernel keeps the other completions until you reap
  short_of_memory,  // EAGAIN: no memory for a request now; each completed request frees some
};

class raw_ring {
 public:
  explicit raw_ring(const ring_view& view) noexcept
      : at_{view}, sq_tail_{*view.sq.tail}, cq_head_{*view.cq.head} {}
  raw_ring(raw_ring&&) = delete;  // two copies of sq_tail_ would hand out the same SQE twice

  // Returns the next free SQE. If the queue is full, returns null and changes nothing. Otherwise
  // clears the SQE (`sqe = {}`), writes its number into its slot of the SQ array, and counts it in
  // sq_tail_. The SQE must not be visible to the kernel before publish().
  [[nodiscard]] ::io_uring_sqe* try_get_sqe() noexcept {
    COURSE_TODO("04.3");
  }

  // Publishes every SQE that try_get_sqe() has returned, with one store: the tail in shared
  // memory becomes sq_tail_. The caller has filled in these SQEs by now.
  void publish() noexcept {
    COURSE_TODO("04.3");
  }

  // Publishes, then calls enter() once, even if that call fails. The call offers the kernel all
  // SQEs that the kernel has not taken yet (unsubmitted() counts them), waits until `wanted` CQEs
  // are there (the kernel counts those that you have not reaped yet, too), and moves overflowed
  // completions into the CQ. Decide when the call needs IORING_ENTER_GETEVENTS. If `entered` has a
  // name for the result, returns it. Otherwise throws refused{"io_uring_enter", result}.
  entered submit_and_wait(unsigned wanted) {
    publish();
    COURSE_TODO("04.3");
  }

  // Copies completions into `into`, the oldest first, until none is left or `into` is full. Then
  // gives their slots back with one store of the head. Returns the count. Never enters the kernel.
  std::size_t reap(std::span<raw_completion> into) noexcept {
    COURSE_TODO("04.4");
  }

  // Returns the next completion, and leaves all others in the queue. If one is there already, reaps
  // it without entering the kernel. Otherwise calls submit_and_wait(), which submits the SQEs that
  // try_get_sqe() has returned, and sleeps until a completion has come. Each failure is temporary,
  // because every completed request frees memory, and reaping makes room in the CQ, so wait() may
  // try again immediately. Does any value of `entered` then need its own step? (If no request can
  // complete, wait() never returns.)
  raw_completion wait() {
    COURSE_TODO("04.4");
  }

  // The number of SQEs that try_get_sqe() has returned and the kernel has not taken yet. A relaxed
  // load is enough, because no code uses this number to decide whether it may write into an SQE.
  // try_get_sqe() decides that, so it has its own load, with acquire.
  [[nodiscard]] std::uint32_t unsubmitted() const noexcept {
    return sq_tail_ - std::atomic_ref{*at_.sq.head}.load(std::memory_order_relaxed);
  }

  // True while the kernel holds completions for which the CQ has no room.
  [[nodiscard]] bool overflowed() const noexcept {
    const auto flags = std::atomic_ref{*at_.sq.flags}.load(std::memory_order_relaxed);
    return (flags & IORING_SQ_CQ_OVERFLOW) != 0;
  }

 private:
  ring_view at_;
  std::uint32_t sq_tail_;  // ours; *sq.tail follows at publish()
  std::uint32_t cq_head_;  // ours; *cq.head follows at the end of reap()
};

}  // namespace uring
