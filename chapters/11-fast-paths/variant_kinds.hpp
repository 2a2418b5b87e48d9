// SPDX-License-Identifier: MIT
// Kinds of echo that differ in their requests alone.
// Owns     each client's buffer, in its frame.
// Lifetime as variant_client.hpp says.
// Threads  the one that runs the queue.
// Errors   how a connection ends concerns that client only.
// See      io_uring_enter(2), io_uring_prep_recv(3)
#pragma once

#include <liburing.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <vector>

#include "file_operations.hpp"
#include "io_request.hpp"
#include "operations.hpp"
#include "task.hpp"
#include "variant_client.hpp"

namespace uring {

template <auto receive, auto send, auto... ready>
task<> echo_in_own_buffer(variant_client client, own_buffers& shared) {
  std::vector<std::byte> buffer(shared.bytes);
  co_await echo_by<receive, send, ready...>(client, buffer);
}

inline constexpr auto* echo_recv_send = &echo_in_own_buffer<recv_plain, send_plain>;

// ---- poll-first: the kernel does not try before it has waited ----

struct prepare_recv_poll_first {
  int socket;
  std::span<std::byte> into;

  void operator()(::io_uring_sqe& sqe) const {
    ::io_uring_prep_recv(&sqe, socket, into.data(), into.size(), 0);
    sqe.ioprio |= IORING_RECVSEND_POLL_FIRST;
  }
};

inline auto recv_poll_first(const variant_client& client, std::span<std::byte> into) {
  return io_request{io_handle{client.waiting}, prepare_recv_poll_first{client.socket(), into}};
}

inline constexpr auto* echo_poll_first = &echo_in_own_buffer<recv_poll_first, send_plain>;

// ---- async: the kernel does not try first, but hands both requests to its worker threads ----

inline auto recv_async(const variant_client& client, std::span<std::byte> into) {
  return with_flags(recv_plain(client, into), IOSQE_ASYNC);
}

inline auto send_async(const variant_client& client, std::span<const std::byte> data) {
  return with_flags(send_plain(client, data), IOSQE_ASYNC);
}

inline constexpr auto* echo_async = &echo_in_own_buffer<recv_async, send_async>;

// ---- recvmsg: the same bytes by the calls that take a struct msghdr ----

// The vector and the message are in the request, which stays at its address until it has completed.
struct one_vector {
  ::iovec bytes;
  mutable ::msghdr message{};

  ::msghdr* get() const noexcept {
    message.msg_iov = const_cast<::iovec*>(&bytes);
    message.msg_iovlen = 1;
    return &message;
  }
};

struct prepare_recv_message {
  int socket;
  one_vector into;

  void operator()(::io_uring_sqe& sqe) const {
    ::io_uring_prep_recvmsg(&sqe, socket, into.get(), 0);
  }
};

struct prepare_send_message {
  int socket;
  one_vector data;

  void operator()(::io_uring_sqe& sqe) const {
    ::io_uring_prep_sendmsg(&sqe, socket, data.get(), MSG_NOSIGNAL);
  }
};

inline auto recv_message(const variant_client& client, std::span<std::byte> into) {
  return io_request{io_handle{client.waiting},
                    prepare_recv_message{client.socket(), {to_iovec(into)}}};
}

inline auto send_message(const variant_client& client, std::span<std::byte> data) {
  return io_request{io_handle{client.given_up},
                    prepare_send_message{client.socket(), {to_iovec(data)}}};
}

inline constexpr auto* echo_recvmsg = &echo_in_own_buffer<recv_message, send_message>;

// ---- poll: wait for the socket by a request of its own, then receive ----

inline auto poll_in(const variant_client& client) {
  return poll_op(client.waiting, client.socket(), POLLIN);
}

inline constexpr auto* echo_after_poll = &echo_in_own_buffer<recv_plain, send_plain, poll_in>;

}  // namespace uring
