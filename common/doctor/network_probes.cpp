// SPDX-License-Identifier: MIT
// Accepting, sending and receiving through the ring, on 127.0.0.1.
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <string>
#include <string_view>

#include "probe_error.hpp"
#include "probe_ring.hpp"
#include "probe_sockets.hpp"
#include "probes.hpp"
#include "unique_fd.hpp"

namespace doctor {
namespace {

constexpr unsigned buffer_bytes = 8;
using small_buffer = std::array<char, buffer_bytes>;

using common::unique_fd;

void expect_more(const completion& from, const char* request) {
  if ((from.flags & IORING_CQE_F_MORE) == 0) {
    throw probe_error{std::string{request} + " ended after its first completion"};
  }
}

void multishot_accept() {
  const loopback_listener listener;
  probe_ring ring;
  ring.prepare(1, ::io_uring_prep_multishot_accept, listener.fd(), nullptr, nullptr, SOCK_CLOEXEC);
  ring.submit();
  for (int n = 0; n < 2; ++n) {
    const unique_fd client = listener.connect();
    const completion accepted = ring.wait();
    const unique_fd server{need(accepted.res, "multishot accept")};
    expect_more(accepted, "the multishot accept");
  }
}

void say_hello_over_slot(probe_ring& ring, const unique_fd& client, int slot) {
  small_buffer buffer{};
  put(client.get(), "hello");
  ring.prepare(2, ::io_uring_prep_recv, slot, buffer.data(), buffer_bytes, 0).flags |=
      IOSQE_FIXED_FILE;
  const completion received = ring.finish("recv from the registered socket");
  if (std::string_view{buffer.data(), static_cast<std::size_t>(received.res)} != "hello") {
    throw probe_error{"the registered socket brought other bytes than were sent"};
  }
  ring.prepare(3, ::io_uring_prep_close_direct, static_cast<unsigned>(slot));
  ring.finish("close of the registered socket");
}

void accept_direct() {
  const loopback_listener listener;
  probe_ring ring;
  need(::io_uring_register_files_sparse(ring.native(), 2), "io_uring_register FILES2, sparse");
  const unique_fd client = listener.connect();
  ring.prepare(1, ::io_uring_prep_accept_direct, listener.fd(), nullptr, nullptr, 0, 1U);
  ring.finish("accept into a registered file");
  say_hello_over_slot(ring, client, 1);
}

void multishot_accept_direct() {
  const loopback_listener listener;
  probe_ring ring;
  need(::io_uring_register_files_sparse(ring.native(), 2), "io_uring_register FILES2, sparse");
  ring.prepare(1, ::io_uring_prep_multishot_accept_direct, listener.fd(), nullptr, nullptr, 0);
  ring.submit();
  const unique_fd client = listener.connect();
  const completion accepted = ring.wait();
  const int slot = need(accepted.res, "multishot accept into registered files");
  expect_more(accepted, "the multishot accept");
  say_hello_over_slot(ring, client, slot);
}

void send_zc() {
  constexpr std::string_view hello = "hello";
  const loopback_pair sockets;
  probe_ring ring;
  ring.prepare(1, ::io_uring_prep_send_zc, sockets.here.get(), hello.data(), hello.size(),
               MSG_NOSIGNAL, 0U);
  const completion sent = ring.finish("send_zc");
  expect_more(sent, "send_zc");
  if ((ring.wait().flags & IORING_CQE_F_NOTIF) == 0) {
    throw probe_error{"the second completion of send_zc is not a notification"};
  }
}

void sendmsg_zc() {
  std::array<char, 5> hello{'h', 'e', 'l', 'l', 'o'};
  ::iovec part{.iov_base = hello.data(), .iov_len = hello.size()};
  ::msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const loopback_pair sockets;
  probe_ring ring;
  ring.prepare(1, ::io_uring_prep_sendmsg_zc, sockets.here.get(), &message, MSG_NOSIGNAL);
  const completion sent = ring.finish("sendmsg_zc");
  expect_more(sent, "sendmsg_zc");
  if ((ring.wait().flags & IORING_CQE_F_NOTIF) == 0) {
    throw probe_error{"the second completion of sendmsg_zc is not a notification"};
  }
}

void socket_op() {
  probe_ring ring;
  ring.prepare(1, ::io_uring_prep_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0, 0U);
  const unique_fd made{ring.finish("socket").res};
}

void shutdown_op() {
  small_buffer buffer{};
  const loopback_pair sockets;
  probe_ring ring;
  ring.prepare(1, ::io_uring_prep_recv, sockets.there.get(), buffer.data(), buffer_bytes, 0);
  ring.submit();
  ring.prepare(2, ::io_uring_prep_shutdown, sockets.here.get(), SHUT_WR);
  ring.submit();
  const int results = need(ring.wait().res, "shutdown") + need(ring.wait().res, "recv");
  if (results != 0) throw probe_error{"the peer of a shut down socket did not see the end"};
}

constexpr std::array network_features{
    feature{"multishot_accept", "network", "5.19", "two connections from one accept request",
            &multishot_accept},
    feature{"accept_direct", "network", "5.15", "a connection as a registered file",
            &accept_direct},
    feature{"multishot_accept_direct", "network", "5.19", "connections as files, by one request",
            &multishot_accept_direct},
    feature{"send_zc", "network", "6.0", "a send without a copy, and its notification", &send_zc},
    feature{"sendmsg_zc", "network", "6.1", "a sendmsg without a copy", &sendmsg_zc},
    feature{"socket_op", "network", "5.19", "a socket made by the ring", &socket_op},
    feature{"shutdown_op", "network", "5.11", "a shutdown that ends the peer's recv", &shutdown_op},
};

}  // namespace

std::span<const feature> network_probes() {
  return network_features;
}

}  // namespace doctor
