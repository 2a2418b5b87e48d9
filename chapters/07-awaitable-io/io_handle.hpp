// SPDX-License-Identifier: MIT
// The first argument of every operation: it names the request's queue, and its canceler.
// Lifetime the queue and the canceler must outlive the operations that are started through it.
// Threads  the one that runs the queue.
#pragma once

#include <cerrno>

#include "canceler.hpp"
#include "io_operation.hpp"
#include "io_queue.hpp"
#include "ring.hpp"

namespace uring {

// An io_handle is as small as a pointer, because each request in a frame holds one. A context and a
// canceler convert to an io_handle implicitly, so that one can write recv_op(context, …).
class io_handle {
 public:
  io_handle(io_queue& queue) noexcept  // NOLINT(google-explicit-constructor)
      : canceler_{&queue.own_canceler()} {}
  io_handle(canceler& by) noexcept : canceler_{&by} {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] io_queue& queue() const noexcept { return canceler_->queue(); }

  // Starts a request. If the canceler is canceled already (possible from chapter 08 on), submits
  // nothing and returns false: the coroutine goes on. After close(), submits nothing either, but
  // returns true: the coroutine stays suspended, because its frame is about to be destroyed.
  template <typename Prepare>
  [[nodiscard]] bool start(io_operation& operation, const Prepare& prepare) const {
    if (is_canceled()) return false;
    if (queue().start(operation, prepare)) canceler_->watch(operation);
    return true;
  }

  // A cancel that interrupts a thread of the kernel causes -EINTR. Returns -ECANCELED instead.
  [[nodiscard]] completion as_canceled(completion done) const noexcept {
    if (done.res == -EINTR && is_canceled()) done.res = -ECANCELED;
    return done;
  }

  [[nodiscard]] bool is_canceled() const noexcept { return canceler_->is_canceled(); }

 private:
  canceler* canceler_;
};

}  // namespace uring
