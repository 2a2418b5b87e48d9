// SPDX-License-Identifier: MIT
#include "listen.hpp"

#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <stdexcept>

#include "errors.hpp"

namespace common {
namespace {

using address_list = std::unique_ptr<::addrinfo, decltype(&::freeaddrinfo)>;

address_list numeric_address(const std::string& host, std::uint16_t port) {
  ::addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  ::addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    throw std::invalid_argument{
        fmt::format("--host {}: not an IPv4 or IPv6 address, such as 127.0.0.1", host)};
  }
  return {found, &::freeaddrinfo};
}

void set_flag(int fd, int level, int option, std::string_view name) {
  const int on = 1;
  check(::setsockopt(fd, level, option, &on, sizeof on), name);
}

}  // namespace

unique_fd listen_on(const std::string& host, std::uint16_t port, const listen_options& options) {
  const address_list address = numeric_address(host, port);
  const int type =
      SOCK_STREAM | SOCK_CLOEXEC | (options.accepts == blocking::no ? SOCK_NONBLOCK : 0);
  unique_fd listener{check(::socket(address->ai_family, type, 0), "socket")};
  // Without this, old connections in TIME_WAIT make a restart within a minute fail.
  set_flag(listener.get(), SOL_SOCKET, SO_REUSEADDR, "setsockopt SO_REUSEADDR");
  // Accepted sockets inherit this. Without it the end of a reply waits for the peer's delayed ACK.
  set_flag(listener.get(), IPPROTO_TCP, TCP_NODELAY, "setsockopt TCP_NODELAY");
  if (options.shared == reuse_port::yes) {
    set_flag(listener.get(), SOL_SOCKET, SO_REUSEPORT, "setsockopt SO_REUSEPORT");
  }
  const std::string where = fmt::format("{}:{}", host, port);
  if (::bind(listener.get(), address->ai_addr, address->ai_addrlen) == -1) {
    const char* const hint = errno == EADDRINUSE      ? " (another program has this port)"
                             : errno == EACCES        ? " (ports below 1024 need root)"
                             : errno == EADDRNOTAVAIL ? " (this machine has no such address)"
                                                      : "";
    throw_errno(fmt::format("bind {}{}", where, hint));
  }
  if (options.shared == reuse_port::after_bind) {
    set_flag(listener.get(), SOL_SOCKET, SO_REUSEPORT, "setsockopt SO_REUSEPORT");
  }
  check(::listen(listener.get(), options.backlog), fmt::format("listen on {}", where));
  return listener;
}

std::uint16_t port_of(int socket) {
  ::sockaddr_storage storage{};
  ::socklen_t size = sizeof storage;
  check(::getsockname(socket, reinterpret_cast<::sockaddr*>(&storage), &size), "getsockname");
  // The port stands at the same place in both.
  static_assert(offsetof(::sockaddr_in, sin_port) == offsetof(::sockaddr_in6, sin6_port));
  return ntohs(reinterpret_cast<const ::sockaddr_in*>(&storage)->sin_port);
}

}  // namespace common
