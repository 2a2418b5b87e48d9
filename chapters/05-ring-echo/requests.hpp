// SPDX-License-Identifier: MIT
// The requests of the echo server. Each function prepares one and tags it for the next submit.
// Owns     nothing; descriptors and buffers belong to the connection.
// Lifetime descriptor and buffer must stay valid until the request's completion has been handled.
// Threads  the ring's.
// Errors   std::system_error from ring::get_sqe(); a CQE's `res` tells how its request ended.
// Rule     prepare first, then set user_data. The sockets block: the kernel does the waiting,
//          so O_NONBLOCK gains nothing, and on older kernels it can bring -EAGAIN.
// See      io_uring_prep_accept(3), io_uring_prep_recv(3), io_uring_prep_send(3)
#pragma once

#include <liburing.h>
#include <poll.h>
#include <sys/socket.h>

#include "ring.hpp"
#include "ring_connection.hpp"
#include "slot_table.hpp"

namespace uring {

inline void request_accept(ring& to, int listener) {
  ::io_uring_sqe& sqe = to.get_sqe();
  ::io_uring_prep_accept(&sqe, listener, nullptr, nullptr, SOCK_CLOEXEC);
  ::io_uring_sqe_set_data64(&sqe, pack({operation::accept, {}}));
}

inline void request_recv(ring& to, const slot_id& whose, ring_connection& client) {
  const auto into = client.free_space();
  ::io_uring_sqe& sqe = to.get_sqe();
  ::io_uring_prep_recv(&sqe, client.fd(), into.data(), into.size(), 0);
  ::io_uring_sqe_set_data64(&sqe, pack({operation::recv, whose}));
}

inline void request_send(ring& to, const slot_id& whose, const ring_connection& client) {
  const auto data = client.unsent();
  ::io_uring_sqe& sqe = to.get_sqe();
  ::io_uring_prep_send(&sqe, client.fd(), data.data(), data.size(), MSG_NOSIGNAL);
  ::io_uring_sqe_set_data64(&sqe, pack({operation::send, whose}));
}

// The poll completes once `fd` is readable. It reads nothing, so a stop_signal stays readable.
inline void request_stop_poll(ring& to, int fd) {
  ::io_uring_sqe& sqe = to.get_sqe();
  ::io_uring_prep_poll_add(&sqe, fd, POLLIN);
  ::io_uring_sqe_set_data64(&sqe, pack({operation::stop_poll, {}}));
}

// After the cancel, the accept completes with -ECANCELED, or with a client that came just before.
inline void cancel_accept(ring& to) {
  ::io_uring_sqe& sqe = to.get_sqe();
  ::io_uring_prep_cancel64(&sqe, pack({operation::accept, {}}), 0);
  ::io_uring_sqe_set_data64(&sqe, pack({operation::cancel, {}}));
}

}  // namespace uring
