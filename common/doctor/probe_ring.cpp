// SPDX-License-Identifier: MIT
#include "probe_ring.hpp"

#include <cerrno>

#include "probe_error.hpp"

namespace doctor {

probe_ring::probe_ring(const ring_shape& shape) {
  ::io_uring_params params{};
  params.flags = shape.flags;
  params.cq_entries = shape.cq_entries;
  params.wq_fd = shape.wq_fd;
  if ((shape.flags & IORING_SETUP_SQPOLL) != 0) params.sq_thread_idle = 50;
  need(::io_uring_queue_init_params(shape.sq_entries, &ring_, &params), "io_uring_setup");
}

probe_ring::~probe_ring() {
  ::io_uring_queue_exit(&ring_);
}

void probe_ring::submit() {
  do {
    const int taken = need(::io_uring_submit(&ring_), "io_uring_enter, to submit");
    // With SQPOLL the kernel's thread takes them when it comes by.
    if ((ring_.flags & IORING_SETUP_SQPOLL) != 0) return;
    if (taken == 0) throw probe_error{"io_uring_enter took no request, although some were ready"};
  } while (::io_uring_sq_ready(&ring_) != 0);  // a bad request ends a batch, not the one after it
}

completion probe_ring::wait() {
  ::__kernel_timespec limit{.tv_sec = wait_deadline_ms.count() / 1000, .tv_nsec = 0};
  ::io_uring_cqe* cqe = nullptr;
  int result = 0;
  do {
    result = ::io_uring_wait_cqe_timeout(&ring_, &cqe, &limit);
  } while (result == -EINTR);
  if (result == -ETIME) throw probe_error{"no completion within the deadline", ETIMEDOUT};
  need(result, "io_uring_enter, to wait");
  const completion copy{.user_data = cqe->user_data, .res = cqe->res, .flags = cqe->flags};
  ::io_uring_cqe_seen(&ring_, cqe);
  return copy;
}

completion probe_ring::finish(std::string_view tried) {
  submit();
  const completion done = wait();
  need(done.res, tried);
  return done;
}

}  // namespace doctor
