// SPDX-License-Identifier: MIT
// Requests that are submitted once, for all clients of a listener or for all bytes of a client. A
// stream turns their completions into items.
// Lifetime a descriptor must stay open until its stream has ended. The pool must outlive all items.
// Threads  the one that runs the queue.
// Errors   the item's result. -EMFILE ends an accept. -ENOBUFS ends a recv, because bytes have come
//          and no buffer is left for them.
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

  // Prepares one accept for all clients to come, with io_uring_prep_multishot_accept(). Pass no
  // address and no length to fill in, because the next client's would overwrite them. Pass the flag
  // SOCK_CLOEXEC, so that child programs do not inherit the descriptors.
  void operator()(::io_uring_sqe& sqe) const {
    // --8<-- [start:task-10-1]
    ::io_uring_prep_multishot_accept(&sqe, listener, nullptr, nullptr, SOCK_CLOEXEC);
    // --8<-- [end:task-10-1]
  }

  // Makes the item of a completion: an `accepted`, see accepted.hpp. done.res is a new client's
  // descriptor, or -errno. From here on the item owns the descriptor, so that the descriptor is
  // closed if the item is dropped. A unique_fd of a negative number owns nothing.
  [[nodiscard]] static accepted result(const completion& done) noexcept {
    // --8<-- [start:task-10-1b]
    return {.result = io_result{done.res}, .client = common::unique_fd{done.res}};
    // --8<-- [end:task-10-1b]
  }
};

struct prepare_recv_stream {
  int fd;
  buffer_pool* pool;

  // Prepares one recv for all bytes to come: io_uring_prep_recv_multishot() with no address, and 0
  // for the length and the flags. As in chapter 09's prepare_pool_recv, the kernel must pick a
  // buffer of the pool's group, and must not pick one before bytes have come.
  // io_uring_prep_recv_multishot() has set a flag in sqe.ioprio: keep it.
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
