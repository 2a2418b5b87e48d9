#pragma once
#include <poll.h>
#include <sys/socket.h>
#include <chrono>
#include <span>
#include "io_request.hpp"
namespace uring {
inline auto nop_op(io_context& context) {
  return io_request{context, [](::io_uring_sqe& sqe) { ::io_uring_prep_nop(&sqe); }};
}
inline auto accept_op(io_context& context, int listener) {
  return io_request{context, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_accept(&sqe, listener, nullptr, nullptr, SOCK_CLOEXEC);
                    }};
}
inline auto recv_op(io_context& context, int fd, std::span<std::byte> into, int flags = 0) {
  return io_request{context, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_recv(&sqe, fd, into.data(), into.size(), flags);
                    }};
}
inline auto send_op(io_context& context, int fd, std::span<const std::byte> data,
                    int flags = MSG_NOSIGNAL) {
  return io_request{context, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_send(&sqe, fd, data.data(), data.size(), flags);
                    }};
}
inline auto poll_op(io_context& context, int fd, unsigned events) {
  return io_request{context,
                    [=](::io_uring_sqe& sqe) { ::io_uring_prep_poll_add(&sqe, fd, events); }};
}
// Completes with -ETIME when `after` has passed.
inline auto timeout_op(io_context& context, std::chrono::nanoseconds after) {
  return io_request{
      context, [limit = ::__kernel_timespec{after.count() / 1'000'000'000,
                                            after.count() % 1'000'000'000}](::io_uring_sqe& sqe) {
        ::io_uring_prep_timeout(&sqe, const_cast<::__kernel_timespec*>(&limit), 0, 0);
      }};
}
}  // namespace uring
