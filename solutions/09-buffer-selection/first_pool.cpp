// SPDX-License-Identifier: MIT
// 09-first-pool: provided buffers as many programs use them at first, with a defect that many have
// copied. The page explains it, and a test shows it. Do not base your own code on this file.
//
//   ./course run 09:first-pool --solution -- --port 9000
#include <liburing.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "announce.hpp"
#include "listen.hpp"
#include "program_main.hpp"
#include "ring.hpp"

namespace {

constexpr int buffers = 64;
constexpr int buffer_bytes = 2048;
constexpr std::uint16_t group = 0;

enum class kind : std::uint16_t { accept, recv, send, provide };

// Tells completions apart.
struct tag {
  kind what;
  std::uint16_t buffer;
  std::int32_t fd;
};
static_assert(sizeof(tag) == sizeof(std::uint64_t), "fits into user_data");

char memory[buffers][buffer_bytes];

void set_tag(::io_uring_sqe& sqe, const tag& says) {
  std::memcpy(&sqe.user_data, &says, sizeof says);
}

void request_accept(uring::ring& ring, int listener) {
  ::io_uring_sqe& sqe = ring.get_sqe();
  ::io_uring_prep_accept(&sqe, listener, nullptr, nullptr, SOCK_CLOEXEC);
  set_tag(sqe, {kind::accept, 0, listener});
}

void request_recv(uring::ring& ring, int fd) {
  ::io_uring_sqe& sqe = ring.get_sqe();
  ::io_uring_prep_recv(&sqe, fd, nullptr, buffer_bytes, 0);
  sqe.flags |= IOSQE_BUFFER_SELECT;
  sqe.buf_group = group;
  set_tag(sqe, {kind::recv, 0, fd});
}

void request_send(uring::ring& ring, int fd, std::uint16_t buffer, std::size_t bytes) {
  ::io_uring_sqe& sqe = ring.get_sqe();
  ::io_uring_prep_send(&sqe, fd, memory[buffer], bytes, MSG_NOSIGNAL | MSG_WAITALL);
  set_tag(sqe, {kind::send, buffer, fd});
}

void provide(uring::ring& ring, std::uint16_t buffer, int count) {
  ::io_uring_sqe& sqe = ring.get_sqe();
  ::io_uring_prep_provide_buffers(&sqe, memory[buffer], buffer_bytes, count, group, buffer);
  set_tag(sqe, {kind::provide, buffer, -1});
}

// --8<-- [start:first-pool]
void on_recv(uring::ring& ring, int fd, std::int32_t res, std::uint32_t flags) {
  const auto buffer = static_cast<std::uint16_t>(flags >> IORING_CQE_BUFFER_SHIFT);
  if (res <= 0) {
    provide(ring, buffer, 1);  // the recv has ended: its buffer goes back
    ::close(fd);
    return;
  }
  request_send(ring, fd, buffer, static_cast<std::size_t>(res));
}
// --8<-- [end:first-pool]

void on_completion(uring::ring& ring, const uring::completion& done) {
  tag from;
  std::memcpy(&from, &done.user_data, sizeof from);
  switch (from.what) {
    case kind::accept:
      if (done.res >= 0) request_recv(ring, done.res);
      request_accept(ring, from.fd);
      break;
    case kind::recv:
      on_recv(ring, from.fd, done.res, done.flags);
      break;
    case kind::send:
      provide(ring, from.buffer, 1);
      request_recv(ring, from.fd);
      break;
    case kind::provide:
      break;
  }
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 09: the first pool, defect included. Not a server to keep."};
  common::server_flags server;
  common::add_server_flags(flags, server, {.threads_max = 1});
  return common::program_main(argc, argv, flags, [&] {
    const common::unique_fd listener = common::listen_on(server.host, server.port);
    uring::ring ring{{}};
    provide(ring, 0, buffers);
    request_accept(ring, listener.get());
    common::announce(listener.get());
    while (true) {
      (void)ring.submit_and_wait();
      for (const uring::completion& done : ring.reap()) on_completion(ring, done);
    }
  });
}
