// SPDX-License-Identifier: MIT
#include "socket_pair.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <array>

#include "errors.hpp"

namespace course_test {
namespace {

void set_buffer(int fd, int option, int bytes) {
  if (bytes == 0) return;
  common::check(::setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof bytes), "setsockopt buffer");
}

common::unique_fd tcp_socket() {
  return common::unique_fd{
      common::check(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")};
}

std::uint16_t bind_any_port(int socket) {
  const ::sockaddr_in address = loopback(0);
  common::check(::bind(socket, reinterpret_cast<const ::sockaddr*>(&address), sizeof address),
                "bind");
  return port_of(socket);
}

}  // namespace

tcp_listener listen_on_any_port(int send_buffer_bytes) {
  tcp_listener made{tcp_socket(), 0};
  // An accepted socket inherits the listener's sizes, from before its first byte on.
  set_buffer(made.socket.get(), SO_SNDBUF, send_buffer_bytes);
  made.port = bind_any_port(made.socket.get());
  common::check(::listen(made.socket.get(), SOMAXCONN), "listen");
  return made;
}

deaf_port::deaf_port() : socket_{tcp_socket()}, number_{bind_any_port(socket_.get())} {}

::sockaddr_in loopback(std::uint16_t port) {
  ::sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

std::uint16_t port_of(int socket) {
  ::sockaddr_in address{};
  ::socklen_t size = sizeof address;
  common::check(::getsockname(socket, reinterpret_cast<::sockaddr*>(&address), &size),
                "getsockname");
  return ntohs(address.sin_port);
}

socket_pair tcp_pair(const socket_pair_options& options) {
  const tcp_listener listener = listen_on_any_port(options.send_buffer_bytes);
  const ::sockaddr_in address = loopback(listener.port);
  socket_pair made{tcp_socket(), {}};
  set_buffer(made.ours.get(), SO_RCVBUF, options.receive_buffer_bytes);
  common::check(
      ::connect(made.ours.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address),
      "connect");
  made.theirs = common::unique_fd{
      common::check(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC), "accept")};
  return made;
}

socket_pair unix_pair(const socket_pair_options& options) {
  std::array<int, 2> ends{};
  common::check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
  socket_pair made{common::unique_fd{ends[0]}, common::unique_fd{ends[1]}};
  set_buffer(made.theirs.get(), SO_SNDBUF, options.send_buffer_bytes);
  set_buffer(made.ours.get(), SO_RCVBUF, options.receive_buffer_bytes);
  return made;
}

void set_nonblocking(int fd) {
  const int flags = common::check(::fcntl(fd, F_GETFL), "fcntl F_GETFL");
  common::check(::fcntl(fd, F_SETFL, flags | O_NONBLOCK), "fcntl O_NONBLOCK");
}

void reset_on_close(int fd) {
  const ::linger at_once{.l_onoff = 1, .l_linger = 0};
  common::check(::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), "SO_LINGER");
}

}  // namespace course_test
