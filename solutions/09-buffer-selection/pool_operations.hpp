// SPDX-License-Identifier: MIT
// A recv without a buffer. When bytes have come, the kernel picks a buffer of the pool.
// Lifetime the descriptor must live until co_await has returned, and the pool until the result has
//          been destroyed.
// Threads  the one that runs the queue.
// Errors   in received::result; -ENOBUFS if bytes have come and every buffer is lent. With
//          MSG_DONTWAIT it is -ENOBUFS even if no bytes have come.
// Rule     the result has the buffer's lease. As long as the lease lives, no other recv gets the
//          buffer.
// See      io_uring_prep_recv(3), io_uring_provided_buffers(7)
#pragma once

#include <liburing.h>
#include <sys/socket.h>

#include "buffer_pool.hpp"
#include "io_request.hpp"
#include "todo.hpp"

namespace uring {

// Returns the lease of the buffer that a completion has taken, or an empty lease. The completion
// has taken a buffer only if done.flags has IORING_CQE_F_BUFFER, whatever done.res is. Then the
// upper bits of done.flags, from bit IORING_CQE_BUFFER_SHIFT on, are the buffer's id, and
// pool.lend() makes the lease.
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

  // Prepares a recv without a buffer: io_uring_prep_recv() with no address, the length 0, which
  // means "as much as the buffer holds", and the member `flags`. Set sqe.buf_group to the pool's
  // group, and add IOSQE_BUFFER_SELECT to sqe.flags, so that the kernel picks a buffer of this
  // group. Add IORING_RECVSEND_POLL_FIRST to sqe.ioprio, so that the kernel waits for bytes before
  // it looks for a buffer. But do not add this flag if the member `flags` has MSG_DONTWAIT, because
  // the recv would then end with -EAGAIN without having looked for bytes.
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
