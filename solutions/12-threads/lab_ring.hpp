// SPDX-License-Identifier: MIT
// How a thread of the laboratory enters the kernel: once for each batch, or more often.
// Owns     the ring.
// Lifetime the memory that a request points at must live until the request has completed, or until
//          the ring is gone.
// Threads  the one that made it.
// Errors   std::system_error if the kernel refuses the ring.
#pragma once

#include <liburing.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>

#include "errors.hpp"
#include "io_queue.hpp"
#include "lab_switches.hpp"
#include "ring.hpp"
#include "ring_options.hpp"
#include "ring_setup.hpp"

namespace uring {

class lab_ring {
 public:
  lab_ring(const lab_switches& switches, const ring_options& options)
      : switches_{switches}, queue_{options} {}
  lab_ring(lab_ring&&) = delete;

  // For io_uring_register_*(3).
  [[nodiscard]] io_queue& queue() noexcept { return queue_; }
  // Cancels every request in flight: see cancel_everything().
  void cancel_all() noexcept { cancel_everything(*ring_); }
  [[nodiscard]] const lab_counts& counts() const noexcept { return counts_; }

  template <typename Prepare>
  void start(std::uint64_t user_data, const Prepare& prepare) {
    ::io_uring_sqe* sqe = ::io_uring_get_sqe(ring_);
    while (sqe == nullptr) {
      submit();
      sqe = ::io_uring_get_sqe(ring_);
    }
    prepare(*sqe);
    sqe->user_data = user_data;
  }

  // --8<-- [start:turn]
  // Calls handle(done) for each completion of a batch.
  template <typename Handle>
  void turn(const Handle& handle) {
    if (!switches_.looks_first || ::io_uring_cq_ready(ring_) == 0) submit_and_wait();
    for (const completion& done : reap()) handle(done);
    if (switches_.submits_each_batch) submit();
  }
  // --8<-- [end:turn]

 private:
  static constexpr unsigned batch_max = 64;

  void submit() {
    if (::io_uring_sq_ready(ring_) == 0) return;
    ++counts_.enters;
    check(::io_uring_submit(ring_));
  }

  void submit_and_wait() {
    ++counts_.enters;
    ++counts_.waits;
    if (switches_.wait_for == 1) return check(::io_uring_submit_and_wait(ring_, 1));
    ::__kernel_timespec at_most{.tv_sec = 0, .tv_nsec = 1'000'000};
    ::io_uring_cqe* first = nullptr;
    check(::io_uring_submit_and_wait_timeout(
        ring_, &first, static_cast<unsigned>(switches_.wait_for), &at_most, nullptr));
  }

  static void check(int result) {
    const bool passes = result == -EINTR || result == -EBUSY || result == -EAGAIN;
    if (result < 0 && !passes && result != -ETIME) common::throw_error(result, "io_uring_enter");
  }

  std::span<const completion> reap() {
    std::array<::io_uring_cqe*, batch_max> found{};
    const unsigned count = ::io_uring_peek_batch_cqe(ring_, found.data(), batch_max);
    for (unsigned i = 0; i < count; ++i) {
      reaped_[i] = {found[i]->user_data, found[i]->res, found[i]->flags};
    }
    ::io_uring_cq_advance(ring_, count);
    counts_.completions += count;
    return std::span{reaped_}.first(count);
  }

  lab_switches switches_;
  io_queue queue_;
  ::io_uring* ring_ = &queue_.handle();
  std::array<completion, batch_max> reaped_{};
  lab_counts counts_;
};

}  // namespace uring
