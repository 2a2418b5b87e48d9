// SPDX-License-Identifier: MIT
// A listening TCP socket, made by hand. The caller owns the returned descriptor.
// Errors   std::system_error that names the call, with no descriptor left open;
//          std::invalid_argument if `host` is not an IPv4 address.
// See      socket(2), setsockopt(2), bind(2), listen(2), ip(7)
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "errors.hpp"
#include "todo.hpp"
#include "unique_fd.hpp"

namespace blocking {

inline ::sockaddr_in ipv4_address(const std::string& host, std::uint16_t port) {
  ::sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    throw std::invalid_argument{"--host " + host + ": not an IPv4 address, such as 127.0.0.1"};
  }
  return address;
}

inline void set_option(int socket, int level, int option, const std::string& name) {
  const int on = 1;
  common::check(::setsockopt(socket, level, option, &on, sizeof on), "setsockopt " + name);
}

// Returns a TCP socket that is bound to host:port and listens. Check every call. An error must
// name the call, as in "socket" or "listen", and leave no descriptor open.
// First call socket() with AF_INET, SOCK_STREAM | SOCK_CLOEXEC and 0. Then call set_option() twice.
// Without SO_REUSEADDR (level SOL_SOCKET), old connections hold the port of a restarted server.
// Without TCP_NODELAY (level IPPROTO_TCP), which accepted sockets inherit, the tail of a large echo
// waits for the client's delayed ACK. Then call bind(), which takes a `const ::sockaddr*`, so cast
// `&address`. If bind() fails, the error must say "bind HOST:PORT", because EADDRINUSE alone does
// not say which address is in use. Last, call listen() with a backlog of SOMAXCONN.
inline common::unique_fd open_listener(const std::string& host, std::uint16_t port) {
  const ::sockaddr_in address = ipv4_address(host, port);
  // --8<-- [start:task-01-1]
  common::unique_fd listener{
      common::check(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")};
  set_option(listener.get(), SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR");
  set_option(listener.get(), IPPROTO_TCP, TCP_NODELAY, "TCP_NODELAY");
  const auto* const generic = reinterpret_cast<const ::sockaddr*>(&address);
  common::check(::bind(listener.get(), generic, sizeof address),
                "bind " + host + ":" + std::to_string(port));
  common::check(::listen(listener.get(), SOMAXCONN), "listen");
  return listener;
  // --8<-- [end:task-01-1]
}

}  // namespace blocking
