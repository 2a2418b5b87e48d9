// SPDX-License-Identifier: MIT
// The answers to a chain of two requests.
#include <liburing.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "answers.hpp"
#include "local_pair.hpp"
#include "memory_file.hpp"
#include "ring.hpp"
#include "unique_fd.hpp"

namespace uring {
namespace {

// --8<-- [start:chain]
// Request 1 fills `bytes` from a file, and request 2 writes them. A flag of request 1 links both.
void request_pair(ring& ring, int from, int to, std::span<std::byte> bytes, std::uint8_t link) {
  ::io_uring_sqe& read = ring.get_sqe();
  ::io_uring_prep_read(&read, from, bytes.data(), static_cast<unsigned>(bytes.size()), 0);
  read.flags |= link;
  read.user_data = 1;
  ::io_uring_sqe& write = ring.get_sqe();
  ::io_uring_prep_write(&write, to, bytes.data(), static_cast<unsigned>(bytes.size()), 0);
  write.user_data = 2;
}
// --8<-- [end:chain]

enum class submitted { together, one_by_one };

// Request 1 waits for a byte, and request 2 does nothing.
void request_wait_and_nop(ring& ring, int socket, std::span<std::byte> bytes, submitted how) {
  ::io_uring_sqe& recv = ring.get_sqe();
  ::io_uring_prep_recv(&recv, socket, bytes.data(), 1, 0);
  recv.flags |= IOSQE_IO_LINK;
  recv.user_data = 1;
  if (how == submitted::one_by_one) (void)ring.submit_and_wait(std::chrono::milliseconds{1});
  ::io_uring_sqe& nop = ring.get_sqe();
  ::io_uring_prep_nop(&nop);
  nop.user_data = 2;
}

}  // namespace

void show_links() {
  std::array<std::byte, 100> buffer{};
  const common::unique_fd ten = file_with("0123456789");
  const common::unique_fd to = file_with("");
  const std::span bytes{buffer};
  const common::local_pair sockets;
  ring own{{}};
  request_pair(own, ten.get(), to.get(), bytes.first(10), IOSQE_IO_LINK);
  show_answers(own, "10 of 10 bytes");
  request_pair(own, ten.get(), to.get(), bytes, IOSQE_IO_LINK);
  show_answers(own, "100 of 10 bytes");
  request_pair(own, ten.get(), to.get(), bytes, IOSQE_IO_HARDLINK);
  show_answers(own, "100 of 10 bytes, hard link");
  request_wait_and_nop(own, sockets.ours.get(), bytes, submitted::together);
  show_answers(own, "a recv that waits, and a nop");
  sockets.say("x");
  show_answers(own, "its byte comes");
  request_wait_and_nop(own, sockets.ours.get(), bytes, submitted::one_by_one);
  show_answers(own, "the same, submitted one by one");
  sockets.say("x");
  show_answers(own, "its byte comes");
}

}  // namespace uring
