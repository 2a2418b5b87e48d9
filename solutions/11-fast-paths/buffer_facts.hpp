// SPDX-License-Identifier: MIT
// Shows which operations on a socket take a registered buffer, and whether a SEND_ZC copies bytes.
// Errors   std::system_error.
// See      io_uring_prep_send_zc(3): IORING_SEND_ZC_REPORT_USAGE
#pragma once

#include <liburing.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "errors.hpp"
#include "fact_chain.hpp"
#include "ring.hpp"
#include "tcp_pair.hpp"
#include "zero_copy.hpp"

namespace uring {

// Prepares a request with `socket`, to which ten bytes have come, and `buffer`, with room for ten.
using ten_bytes = std::array<char, 10>;
using prepare_transfer = void(::io_uring_sqe& sqe, int socket, ten_bytes& buffer);

// Returns all completions of one request, which gets a registered buffer.
inline std::vector<completion> transfer(prepare_transfer* prepare) {
  ten_bytes buffer{};
  const tcp_pair sockets = connect_to_ourselves();
  common::check(::send(sockets.theirs.get(), "ten bytes.", 10, MSG_NOSIGNAL), "send");
  ring own{{}};
  const ::iovec whole{.iov_base = buffer.data(), .iov_len = buffer.size()};
  const int registered = ::io_uring_register_buffers(&own.handle(), &whole, 1);
  if (registered < 0) common::throw_error(registered, "io_uring_register_buffers");
  ::io_uring_sqe& sqe = own.get_sqe();
  prepare(sqe, sockets.ours.get(), buffer);
  sqe.user_data = 0;
  std::vector<completion> all;
  do {
    (void)own.submit_and_wait();
    for (const completion& done : own.reap()) all.push_back(done);
  } while (all.empty() || (all.back().flags & IORING_CQE_F_MORE) != 0);
  return all;
}

inline std::int32_t result_of_transfer(prepare_transfer* prepare) {
  return transfer(prepare).front().res;
}

inline void prepare_fixed_recv(::io_uring_sqe& sqe, int socket, ten_bytes& buffer) {
  ::io_uring_prep_recv(&sqe, socket, buffer.data(), buffer.size(), 0);
  sqe.ioprio |= IORING_RECVSEND_FIXED_BUF;
}

inline void prepare_fixed_send(::io_uring_sqe& sqe, int socket, ten_bytes& buffer) {
  ::io_uring_prep_send(&sqe, socket, buffer.data(), buffer.size(), MSG_NOSIGNAL);
  sqe.ioprio |= IORING_RECVSEND_FIXED_BUF;
}

inline void prepare_fixed_read(::io_uring_sqe& sqe, int socket, ten_bytes& buffer) {
  ::io_uring_prep_read_fixed(&sqe, socket, buffer.data(), unsigned{10}, 0, 0);
}

inline void prepare_fixed_send_zc(::io_uring_sqe& sqe, int socket, ten_bytes& buffer) {
  ::io_uring_prep_send_zc_fixed(&sqe, socket, buffer.data(), buffer.size(), MSG_NOSIGNAL, 0, 0);
}

inline void prepare_reporting_send(::io_uring_sqe& sqe, int socket, ten_bytes& buffer) {
  ::io_uring_prep_send_zc(&sqe, socket, buffer.data(), buffer.size(), MSG_NOSIGNAL, report_usage);
}

inline void show_registered_buffers() {
  std::puts("Ten bytes through a socket:");
  print_bytes("RECV into a registered buffer", result_of_transfer(prepare_fixed_recv));
  print_bytes("SEND from a registered buffer", result_of_transfer(prepare_fixed_send));
  print_bytes("READ_FIXED into a registered buffer", result_of_transfer(prepare_fixed_read));
  print_bytes("SEND_ZC from a registered buffer", result_of_transfer(prepare_fixed_send_zc));
  const completion last = transfer(prepare_reporting_send).back();
  if ((last.flags & IORING_CQE_F_NOTIF) == 0) return;  // Linux before 6.2 has no such report
  const bool was_copied = (static_cast<std::uint32_t>(last.res) & usage_copied) != 0;
  print_fact("copies made by a SEND_ZC over loopback", was_copied ? 1 : 0);
}

}  // namespace uring
