// SPDX-License-Identifier: MIT
// 10-first-multishot: a multishot accept as many programs use it at first, with a defect that is
// often copied. The page explains the defect, and a test in tests/10-multishot shows it. Do not
// base your own code on this file.
//
//   ./course run 10:first-multishot --solution -- --port 9000 --descriptors 20
#include <liburing.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>

#include "announce.hpp"
#include "errors.hpp"
#include "listen.hpp"
#include "program_main.hpp"
#include "ring.hpp"

namespace {

enum class kind : std::uint32_t { accept, recv, send };

// Tells completions apart.
struct tag {
  kind what;
  std::int32_t fd;
};
static_assert(sizeof(tag) == sizeof(std::uint64_t), "fits into user_data");

// The bytes that each client has sent, by its descriptor.
std::map<int, std::array<char, 2048>> buffers;

void set_tag(::io_uring_sqe& sqe, const tag& says) {
  std::memcpy(&sqe.user_data, &says, sizeof says);
}

void request_recv(uring::ring& ring, int fd) {
  ::io_uring_sqe& sqe = ring.get_sqe();
  ::io_uring_prep_recv(&sqe, fd, buffers[fd].data(), buffers[fd].size(), 0);
  set_tag(sqe, {kind::recv, fd});
}

void request_send(uring::ring& ring, int fd, std::size_t bytes) {
  ::io_uring_sqe& sqe = ring.get_sqe();
  ::io_uring_prep_send(&sqe, fd, buffers[fd].data(), bytes, MSG_NOSIGNAL | MSG_WAITALL);
  set_tag(sqe, {kind::send, fd});
}

void request_accept(uring::ring& ring, int listener) {
  ::io_uring_sqe& sqe = ring.get_sqe();
  ::io_uring_prep_multishot_accept(&sqe, listener, nullptr, nullptr, SOCK_CLOEXEC);
  set_tag(sqe, {kind::accept, listener});  // once, for all clients to come
}

void on_accept(uring::ring& ring, std::int32_t res) {
  if (res >= 0) request_recv(ring, res);
}

void on_recv(uring::ring& ring, int fd, std::int32_t res) {
  if (res > 0) return request_send(ring, fd, static_cast<std::size_t>(res));
  buffers.erase(fd);
  ::close(fd);
}

void on_completion(uring::ring& ring, const uring::completion& done) {
  tag from;
  std::memcpy(&from, &done.user_data, sizeof from);
  switch (from.what) {
    case kind::accept:
      return on_accept(ring, done.res);
    case kind::recv:
      return on_recv(ring, from.fd, done.res);
    case kind::send:
      return request_recv(ring, from.fd);
  }
}

// Makes the limit small, so that it is soon reached. The usual limit is 1,024.
void limit_descriptors(std::int64_t to) {
  ::rlimit limit{};
  common::check(::getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
  limit.rlim_cur = std::min(limit.rlim_cur, static_cast<::rlim_t>(to));
  common::check(::setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 10: a first multishot, defect included. Not a server to keep."};
  common::server_flags server;
  std::int64_t descriptors = 1024;
  common::add_server_flags(flags, server, {.threads_max = 1});
  flags.add("--descriptors", descriptors, 8, 1'000'000, "Descriptors that it may have open");
  return common::program_main(argc, argv, flags, [&] {
    limit_descriptors(descriptors);
    const common::unique_fd listener = common::listen_on(server.host, server.port);
    uring::ring ring{{}};
    request_accept(ring, listener.get());
    common::announce(listener.get());
    while (true) {
      (void)ring.submit_and_wait();
      for (const uring::completion& done : ring.reap()) on_completion(ring, done);
    }
  });
}
