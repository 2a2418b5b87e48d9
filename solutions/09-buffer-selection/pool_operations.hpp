// SPDX-License-Identifier: MIT
// A recv for which the kernel picks a buffer, but only when bytes have come for it.
// Lifetime the descriptor must live until co_await has returned, and the pool until the result has
//          been destroyed.
// Threads  the one that runs the queue.
// Errors   in received::result; -ENOBUFS if bytes have come and every buffer is lent.
// Rule     the result has the buffer's lease. As long as it lives, no other recv gets the buffer.
// See      io_uring_prep_recv(3), io_uring_provided_buffers(7)
#pragma once

#include <liburing.h>
#include <sys/socket.h>

#include "buffer_pool.hpp"
#include "io_request.hpp"
#include "todo.hpp"

namespace uring {

// The lease of the buffer that a completion has taken, or an empty one. The completion has taken a
// buffer only if IORING_CQE_F_BUFFER is set. Then the flags have the buffer's id above
// IORING_CQE_BUFFER_SHIFT, and the pool lends it. This holds for a failed or canceled recv, too.
[[nodiscard]] inline buffer_lease take_buffer(buffer_pool& pool, const completion& done) {
  // --8<-- [start:task-09-2]
  if ((done.flags & IORING_CQE_F_BUFFER) == 0) return {};
  return pool.lend(static_cast<buffer_id>(done.flags >> IORING_CQE_BUFFER_SHIFT));
  // --8<-- [end:task-09-2]
}

struct prepare_pool_recv {
  int fd;
  buffer_pool* pool;
  int flags;

  // A recv without a buffer: no address, and a length of 0 for "as much as the buffer holds". The
  // flag IOSQE_BUFFER_SELECT asks for a buffer of the group in buf_group. The flag
  // IORING_RECVSEND_POLL_FIRST in ioprio makes the kernel wait for bytes before it looks for a
  // buffer. Do not set it if the flags have MSG_DONTWAIT.
  void operator()(::io_uring_sqe& sqe) const {
    // --8<-- [start:task-09-2b]
    ::io_uring_prep_recv(&sqe, fd, nullptr, 0, flags);
    sqe.flags |= IOSQE_BUFFER_SELECT;
    sqe.buf_group = pool->group();
    if ((flags & MSG_DONTWAIT) == 0) sqe.ioprio |= IORING_RECVSEND_POLL_FIRST;
    // --8<-- [end:task-09-2b]
  }

  received result(const completion& done) const {
    return {.result = io_result{done.res}, .lease = take_buffer(*pool, done)};
  }
};

inline auto recv_op(const io_handle& io, int fd, buffer_pool& from, int flags = 0) {
  return io_request{io, prepare_pool_recv{fd, &from, flags}};
}

}  // namespace uring
