// SPDX-License-Identifier: MIT
// Requests that are submitted once, for all clients of a listener or for all bytes of a client. A
// stream turns their completions into items.
// Lifetime a descriptor must stay open until its stream has ended. The pool must outlive all items.
// Threads  the one that runs the queue.
// Errors   the item's result. -EMFILE ends an accept. -ENOBUFS ends a recv: bytes have come, and no
//          buffer is left for them.
// Rule     an item owns what its completion has brought: a descriptor or a buffer. While a recv is
//          armed, its completions use up buffers, even if no coroutine takes the items.
// See      io_uring_prep_multishot_accept(3), io_uring_prep_recv_multishot(3)
#pragma once

#include <liburing.h>
#include <sys/socket.h>

#include "accepted.hpp"
#include "buffer_pool.hpp"
#include "io_result.hpp"
#include "pool_operations.hpp"
#include "stream.hpp"
#include "todo.hpp"
#include "unique_fd.hpp"

namespace uring {

struct prepare_accept_stream {
  int listener;

  // One accept for all clients to come, by io_uring_prep_multishot_accept(). Ask for no address:
  // the next client would overwrite it. SOCK_CLOEXEC keeps the descriptors from child programs.
  void operator()(::io_uring_sqe& sqe) const {
    // --8<-- [start:task-10-1]
    ::io_uring_prep_multishot_accept(&sqe, listener, nullptr, nullptr, SOCK_CLOEXEC);
    // --8<-- [end:task-10-1]
  }

  // Makes an item of a completion's result, and of its client, if there is one. From here on the
  // item owns the descriptor: if the item is dropped, the descriptor is closed with it.
  [[nodiscard]] static accepted result(const completion& done) noexcept {
    // --8<-- [start:task-10-1b]
    return {.result = io_result{done.res}, .client = common::unique_fd{done.res}};
    // --8<-- [end:task-10-1b]
  }
};

struct prepare_recv_stream {
  int fd;
  buffer_pool* pool;

  // One recv for all bytes to come, by io_uring_prep_recv_multishot() without address, length and
  // flags. As in prepare_pool_recv, the kernel picks a buffer of the pool's group, and picks none
  // before there are bytes. The multishot flag stands in ioprio, too: keep it.
  void operator()(::io_uring_sqe& sqe) const {
    // --8<-- [start:task-10-1c]
    ::io_uring_prep_recv_multishot(&sqe, fd, nullptr, 0, 0);
    sqe.flags |= IOSQE_BUFFER_SELECT;
    sqe.buf_group = pool->group();
    sqe.ioprio |= IORING_RECVSEND_POLL_FIRST;
    // --8<-- [end:task-10-1c]
  }

  [[nodiscard]] received result(const completion& done) const {
    return {.result = io_result{done.res}, .lease = take_buffer(*pool, done)};
  }
};

using accept_stream = stream<prepare_accept_stream>;
using recv_stream = stream<prepare_recv_stream>;

}  // namespace uring
