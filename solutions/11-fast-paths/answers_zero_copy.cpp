// SPDX-License-Identifier: MIT
// The answers to a zero-copy send, and when they come.
#include <liburing.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdio>
#include <span>
#include <vector>

#include "answers.hpp"
#include "connection_reset.hpp"
#include "ring.hpp"
#include "tcp_pair.hpp"

namespace uring {
namespace {

void request_send(ring& ring, int socket, std::span<const std::byte> bytes) {
  ::io_uring_sqe& send = ring.get_sqe();
  ::io_uring_prep_send_zc(&send, socket, bytes.data(), bytes.size(), MSG_NOSIGNAL, 0);
  send.user_data = 1;
}

// Request 1 fails, and request 2, a zero-copy send, is linked to it.
void request_send_behind_a_failure(ring& ring, int socket, std::span<const std::byte> bytes) {
  ::io_uring_sqe& fails = ring.get_sqe();
  ::io_uring_prep_read(&fails, -1, nullptr, 0, 0);
  fails.flags |= IOSQE_IO_LINK;
  fails.user_data = 1;
  ::io_uring_sqe& send = ring.get_sqe();
  ::io_uring_prep_send_zc(&send, socket, bytes.data(), bytes.size(), MSG_NOSIGNAL, 0);
  send.user_data = 2;
}

}  // namespace

void show_zero_copy() {
  const std::vector<std::byte> bytes(16 << 20);
  const tcp_pair sockets = connect_to_ourselves();
  ring own{{}};
  request_send(own, sockets.ours.get(), std::span{bytes}.first(5));
  const int answers = show_answers(own, "5 bytes");
  request_send(own, -1, std::span{bytes}.first(5));
  show_answers(own, "5 bytes to no socket");
  request_send_behind_a_failure(own, sockets.ours.get(), std::span{bytes}.first(5));
  show_answers(own, "5 bytes, linked to what fails");
  request_send(own, sockets.ours.get(), bytes);
  show_answers(own, "16 MiB, and the peer does not read");
  reset_connection(sockets.ours.get());
  show_answers(own, "the connection is reset");
  std::printf("completions of a send: %d\n", answers);
}

}  // namespace uring
