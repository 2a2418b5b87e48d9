// SPDX-License-Identifier: MIT
#include "probe_sockets.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "errors.hpp"
#include "listen.hpp"

namespace doctor {
namespace {

using common::check;
using common::unique_fd;

}  // namespace

loopback_listener::loopback_listener() : socket_{common::listen_on("127.0.0.1", 0)} {}

unique_fd loopback_listener::connect() const {
  ::sockaddr_in address{};
  auto* const generic = reinterpret_cast<::sockaddr*>(&address);
  ::socklen_t size = sizeof address;
  check(::getsockname(fd(), generic, &size), "getsockname of the listener");
  unique_fd client{check(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")};
  check(::connect(client.get(), generic, size), "connect to 127.0.0.1");
  return client;
}

loopback_pair::loopback_pair() {
  const loopback_listener listener;
  there = listener.connect();
  here = unique_fd{check(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC), "accept")};
}

pipe_ends::pipe_ends() {
  std::array<int, 2> ends{};
  check(::pipe2(ends.data(), O_CLOEXEC), "pipe");
  read = unique_fd{ends[0]};
  write = unique_fd{ends[1]};
}

void put(int fd, std::string_view text) {
  // SIGPIPE cannot come: the probe holds the other end open.
  check(::write(fd, text.data(), text.size()), "write");
}

}  // namespace doctor
