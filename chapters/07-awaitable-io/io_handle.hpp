// SPDX-License-Identifier: MIT
// Where a request goes, and what may end it early: the first argument of every operation.
// Lifetime the queue and the canceler must outlive the operations that are started through it.
// Threads  the one that runs the queue.
#pragma once

#include <cerrno>

#include "canceler.hpp"
#include "io_operation.hpp"
#include "io_queue.hpp"
#include "ring.hpp"

namespace uring {

// It is one pointer in size, because each request in a frame holds one. A context converts to it
// implicitly, so that one can write recv_op(context, …), and so does a canceler.
class io_handle {
 public:
  io_handle(io_queue& queue) noexcept  // NOLINT(google-explicit-constructor)
      : canceler_{&queue.own_canceler()} {}
  io_handle(canceler& by) noexcept : canceler_{&by} {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] io_queue& queue() const noexcept { return canceler_->queue(); }

  // Starts a request, unless it was canceled before: then nothing is submitted, and it is false.
  template <typename Prepare>
  [[nodiscard]] bool start(io_operation& operation, const Prepare& prepare) const {
    if (is_canceled()) return false;
    if (queue().start(operation, prepare)) canceler_->watch(operation);
    return true;
  }

  // A cancel that interrupts a worker thread of the kernel gives -EINTR: that is canceled, too.
  [[nodiscard]] completion as_canceled(completion done) const noexcept {
    if (done.res == -EINTR && is_canceled()) done.res = -ECANCELED;
    return done;
  }

  [[nodiscard]] bool is_canceled() const noexcept { return canceler_->is_canceled(); }

 private:
  canceler* canceler_;
};

}  // namespace uring
