// SPDX-License-Identifier: MIT
// The operations on sockets, on time and on rings, each named like its call. A co_await gives an
// io_result. File operations are in file_operations.hpp and path_operations.hpp. The first argument
// names the queue that the request goes to: it is a context, for example.
// Owns     nothing; a new descriptor in a result is the caller's.
// Lifetime descriptors, buffers and structures that a pointer or span leads to must live until
//          co_await has returned. A duration is copied into the request.
// Threads  the one that runs the queue.
// Errors   the io_result's; see io_request.hpp.
// Rule     sockets stay blocking, because the kernel waits for us. Have at most one send in flight
//          on each socket.
// See      io_uring_enter(2), io_uring_prep_recv(3) and the like
#pragma once

#include <liburing.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "io_request.hpp"
#include "todo.hpp"

namespace uring {

// Completes in the next turn, with 0. Other tasks may run before that, so a nop can yield to them.
inline auto nop_op(const io_handle& io) {
  return io_request{io, [](::io_uring_sqe& sqe) { ::io_uring_prep_nop(&sqe); }};
}

// Completes with the events that have come, such as POLLIN. It reads nothing.
inline auto poll_op(const io_handle& io, int fd, unsigned events) {
  return io_request{io, [=](::io_uring_sqe& sqe) { ::io_uring_prep_poll_add(&sqe, fd, events); }};
}

// ---- sockets ----

// Completes with a client's descriptor. The next client needs another accept_op.
inline auto accept_op(const io_handle& io, int listener) {
  return io_request{io, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_accept(&sqe, listener, nullptr, nullptr, SOCK_CLOEXEC);
                    }};
}

inline auto connect_op(const io_handle& io, int fd, const ::sockaddr* address,
                       ::socklen_t address_bytes) {
  return io_request{
      io, [=](::io_uring_sqe& sqe) { ::io_uring_prep_connect(&sqe, fd, address, address_bytes); }};
}

// Completes with a count of bytes; 0 is EOF. Prepare the SQE with io_uring_prep_recv(): after
// the SQE, it takes the arguments of recv(2).
inline auto recv_op(const io_handle& io, int fd, std::span<std::byte> into, int flags = 0) {
  return io_request{io, [=, into = transferable(into)](::io_uring_sqe& sqe) {
                      // --8<-- [start:task-07-5]
                      ::io_uring_prep_recv(&sqe, fd, into.data(), into.size(), flags);
                      // --8<-- [end:task-07-5]
                    }};
}

// Completes with the number of bytes that the socket took, which may be fewer than `data` has.
inline auto send_op(const io_handle& io, int fd, std::span<const std::byte> data,
                    int flags = MSG_NOSIGNAL) {
  return io_request{io, [=, data = transferable(data)](::io_uring_sqe& sqe) {
                      ::io_uring_prep_send(&sqe, fd, data.data(), data.size(), flags);
                    }};
}

// Like recvmsg(2). `message`, its vectors and their buffers must live until co_await has returned.
inline auto recvmsg_op(const io_handle& io, int fd, ::msghdr& message, unsigned flags = 0) {
  return io_request{io, [=, to = &message](::io_uring_sqe& sqe) {
                      ::io_uring_prep_recvmsg(&sqe, fd, to, flags);
                    }};
}

inline auto sendmsg_op(const io_handle& io, int fd, const ::msghdr& message,
                       unsigned flags = MSG_NOSIGNAL) {
  return io_request{io, [=, from = &message](::io_uring_sqe& sqe) {
                      ::io_uring_prep_sendmsg(&sqe, fd, from, flags);
                    }};
}

// SHUT_RD, SHUT_WR or SHUT_RDWR. SHUT_RD ends a recv that waits on the socket; close does not.
inline auto shutdown_op(const io_handle& io, int fd, int how) {
  return io_request{io, [=](::io_uring_sqe& sqe) { ::io_uring_prep_shutdown(&sqe, fd, how); }};
}

// ---- time ----

// The kernel's form of a duration: tv_sec has the whole seconds, tv_nsec the rest, which is from 0
// to 999,999,999 nanoseconds. `after` must not be negative.
[[nodiscard]] inline ::__kernel_timespec to_timespec(std::chrono::nanoseconds after) {
  // --8<-- [start:task-07-5b]
  const auto whole = std::chrono::floor<std::chrono::seconds>(after);
  return {.tv_sec = whole.count(), .tv_nsec = (after - whole).count()};
  // --8<-- [end:task-07-5b]
}

struct prepare_timeout {
  ::__kernel_timespec limit;

  // Calls io_uring_prep_timeout() with a count of 0 and no flags. The kernel reads the time when
  // the request is submitted, after this function has returned. So pass the address of `limit`
  // itself, which lives in the awaiting frame. liburing takes a pointer to non-const but writes
  // nothing there, so a const_cast<::__kernel_timespec*> is allowed.
  void operator()(::io_uring_sqe& sqe) const {
    // --8<-- [start:task-07-5c]
    ::io_uring_prep_timeout(&sqe, const_cast<::__kernel_timespec*>(&limit), 0, 0);
    // --8<-- [end:task-07-5c]
  }
};

// Completes with -ETIME when `after` has passed, and immediately if `after` is negative. For a
// timeout, -ETIME means success.
inline auto timeout_op(const io_handle& io, std::chrono::nanoseconds after) {
  return io_request{io, prepare_timeout{to_timespec(std::max(after, std::chrono::nanoseconds{0}))}};
}

// ---- another ring ----

// Sends a message: `to` gives `word` and `value` to its receiver, on the thread that runs `to`.
// `word` must be even, and `to` must live until this has completed.
inline auto msg_ring_op(const io_handle& io, io_queue& to, std::uint64_t word, std::int32_t value) {
  assert((word & message_bit) == 0 && "this bit tells a message from an operation");
  return io_request{io, [=, target = to.handle().ring_fd](::io_uring_sqe& sqe) {
                      ::io_uring_prep_msg_ring(&sqe, target, static_cast<unsigned>(value),
                                               word | message_bit, 0);
                    }};
}

}  // namespace uring
