// SPDX-License-Identifier: MIT
// 05-first-loop: the loop that many io_uring programs start from, with its defects. The page names
// them, and tests/05-ring-echo shows each one. Do not start from this loop.
//
//   ./course run 05:first-loop -- --port 9000
#include <liburing.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "announce.hpp"
#include "errors.hpp"
#include "listen.hpp"
#include "program_main.hpp"
#include "ring_options.hpp"

namespace {

constexpr unsigned clients_max = 512;
constexpr unsigned message_bytes_max = 2048;

enum : std::uint32_t { accept_done, read_done, write_done };

struct conn_info {
  std::uint32_t fd;
  std::uint32_t type;
};
static_assert(sizeof(conn_info) == sizeof(std::uint64_t), "fits into user_data");

char buffers[clients_max][message_bytes_max];

void add(::io_uring_sqe* sqe, std::uint32_t fd, std::uint32_t type) {
  const conn_info info{fd, type};
  std::memcpy(&sqe->user_data, &info, sizeof info);
}

void add_accept(::io_uring& ring, int listener) {
  ::io_uring_sqe* const sqe = ::io_uring_get_sqe(&ring);
  ::io_uring_prep_accept(sqe, listener, nullptr, nullptr, 0);
  add(sqe, static_cast<std::uint32_t>(listener), accept_done);
}

void add_read(::io_uring& ring, std::uint32_t fd) {
  ::io_uring_sqe* const sqe = ::io_uring_get_sqe(&ring);
  ::io_uring_prep_recv(sqe, static_cast<int>(fd), buffers[fd], message_bytes_max, 0);
  add(sqe, fd, read_done);
}

void add_write(::io_uring& ring, std::uint32_t fd, std::size_t bytes) {
  ::io_uring_sqe* const sqe = ::io_uring_get_sqe(&ring);
  ::io_uring_prep_send(sqe, static_cast<int>(fd), buffers[fd], bytes, 0);
  add(sqe, fd, write_done);
}

void on_completion(::io_uring& ring, int listener, const ::io_uring_cqe& cqe) {
  conn_info from;
  std::memcpy(&from, &cqe.user_data, sizeof from);
  switch (from.type) {
    case accept_done:
      if (cqe.res >= 0) add_read(ring, static_cast<std::uint32_t>(cqe.res));
      add_accept(ring, listener);
      break;
    case read_done:
      if (cqe.res <= 0) {
        ::shutdown(static_cast<int>(from.fd), SHUT_RDWR);
      } else {
        add_write(ring, from.fd, static_cast<std::size_t>(cqe.res));
      }
      break;
    case write_done:
      add_read(ring, from.fd);
      break;
  }
}

void run(::io_uring& ring, int listener) {
  add_accept(ring, listener);
  while (true) {
    if (::io_uring_submit_and_wait(&ring, 1) < 0) return;
    unsigned head = 0;
    unsigned count = 0;
    ::io_uring_cqe* cqe = nullptr;
    io_uring_for_each_cqe(&ring, head, cqe) {
      on_completion(ring, listener, *cqe);
      ++count;
    }
    ::io_uring_cq_advance(&ring, count);
  }
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 05: the first loop, defects included. Not a server to keep."};
  common::server_flags server;
  common::add_server_flags(flags, server, {.threads_max = 1});
  const uring::ring_command_line options{flags};
  return common::program_main(argc, argv, flags, [&] {
    const common::unique_fd listener = common::listen_on(server.host, server.port);
    ::io_uring ring;
    const int result = ::io_uring_queue_init(options.options().sq_entries, &ring, 0);
    if (result < 0) common::throw_error(result, "io_uring_setup");
    common::announce(listener.get());
    run(ring, listener.get());
    ::io_uring_queue_exit(&ring);
  });
}
