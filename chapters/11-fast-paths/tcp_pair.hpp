// SPDX-License-Identifier: MIT
// Both ends of a TCP connection over loopback, for programs that show zero-copy sends, which need
// a TCP socket.
// Owns     both sockets.
// Errors   std::system_error.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

#include "errors.hpp"
#include "listen.hpp"
#include "unique_fd.hpp"

namespace uring {

struct tcp_pair {
  common::unique_fd ours;
  common::unique_fd theirs;
};

[[nodiscard]] inline tcp_pair connect_to_ourselves() {
  const common::unique_fd listener = common::listen_on("127.0.0.1", 0);
  ::sockaddr_in address{};
  ::socklen_t bytes = sizeof address;
  auto* const generic = reinterpret_cast<::sockaddr*>(&address);
  common::check(::getsockname(listener.get(), generic, &bytes), "getsockname");
  common::unique_fd ours{common::check(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")};
  common::check(::connect(ours.get(), generic, bytes), "connect");
  const int theirs = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
  return {std::move(ours), common::unique_fd{common::check(theirs, "accept4")}};
}

}  // namespace uring
