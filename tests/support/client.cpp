// SPDX-License-Identifier: MIT
#include "client.hpp"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <linux/tcp.h>  // its tcp_info has the window; <netinet/tcp.h> has an older one
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <ostream>

#include "errors.hpp"
#include "socket_pair.hpp"
#include "socket_steps.hpp"

namespace course_test {
namespace {

void set_option(int fd, int level, int option, int value) {
  common::check(::setsockopt(fd, level, option, &value, sizeof value), "setsockopt");
}

common::unique_fd unconnected_socket(const client_options& options) {
  common::unique_fd made{
      common::check(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket")};
  // Each send leaves at once: a test that sends byte by byte means it.
  set_option(made.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  const auto set_buffer = [&](int option, int bytes) {
    if (bytes != 0) set_option(made.get(), SOL_SOCKET, option, bytes);
  };
  set_buffer(SO_RCVBUF, options.receive_buffer_bytes);
  set_buffer(SO_SNDBUF, options.send_buffer_bytes);
  return made;
}

int connect_error(int fd, std::uint16_t port, const time_limit& limit) {
  ::sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<const ::sockaddr*>(&address), sizeof address) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(fd, POLLOUT, limit)) return ETIMEDOUT;
  int error = 0;
  ::socklen_t size = sizeof error;
  common::check(::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), "getsockopt SO_ERROR");
  return error;
}

// Waits for more only if nothing came, so that a server that never stops sending hits the limit
// too.
bool may_continue(int fd, const transfer& last, const time_limit& limit) {
  if (last.what == outcome::some) return limit.left() > milliseconds{0};
  return wait_for(fd, POLLIN, limit);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, ending how) {
  switch (how) {
    case ending::eof:
      return out << "an orderly end (EOF)";
    case ending::reset:
      return out << "a reset (RST)";
    case ending::still_open:
      return out << "still open";
  }
  return out;
}

client::client(std::uint16_t port, const client_options& options)
    : socket_{unconnected_socket(options)} {
  const int error = connect_error(fd(), port, time_limit{options.connect_deadline});
  if (error == 0) return;
  throw client_error{"connect to 127.0.0.1:" + std::to_string(port) + ": " +
                     common::describe_errno(error)};
}

void client::send_all(std::string_view data, milliseconds deadline) {
  const time_limit limit{deadline};
  std::size_t sent_bytes = 0;
  while (sent_bytes < data.size()) {
    const transfer went = try_send(fd(), data.substr(sent_bytes));
    sent_bytes += went.bytes;
    if (went.what == outcome::some) continue;
    const std::string so_far = "sent " + of_bytes(sent_bytes, data.size()) + ", ";
    if (went.what == outcome::broken) throw client_error{so_far + how_it_ended(went)};
    if (!wait_for(fd(), POLLOUT, limit)) {
      throw client_error{so_far + "then the server took no more for the rest of " +
                         limit.describe()};
    }
  }
}

void client::send_byte_by_byte(std::string_view data, milliseconds deadline) {
  const time_limit limit{deadline};
  for (const char each : data) send_all({&each, 1}, limit.left());
}

std::size_t client::send_some(std::string_view data) {
  const transfer went = try_send(fd(), data);
  if (went.what == outcome::broken) throw client_error{"send: " + how_it_ended(went)};
  return went.bytes;
}

std::string client::recv_exactly(std::size_t bytes, milliseconds deadline) {
  const time_limit limit{deadline};
  std::string received;
  while (received.size() < bytes) {
    const transfer got = try_recv(fd(), received, bytes - received.size());
    if (got.what == outcome::some) continue;
    const std::string so_far = "got " + of_bytes(received.size(), bytes) + ", ";
    if (got.what != outcome::none_now) throw client_error{so_far + how_it_ended(got)};
    if (!wait_for(fd(), POLLIN, limit)) {
      throw client_error{so_far + "then nothing more within " + limit.describe()};
    }
  }
  return received;
}

std::string client::recv_until_eof(milliseconds deadline) {
  const time_limit limit{deadline};
  std::string received;
  while (true) {
    const transfer got = try_recv(fd(), received, chunk_bytes);
    if (got.what == outcome::eof) return received;
    const std::string so_far =
        "waiting for EOF: got " + std::to_string(received.size()) + " bytes, ";
    if (got.what == outcome::broken) throw client_error{so_far + how_it_ended(got)};
    if (!may_continue(fd(), got, limit)) {
      throw client_error{so_far + "and the connection is still open after " + limit.describe()};
    }
  }
}

std::string client::recv_some(std::size_t bytes) {
  std::string received;
  const transfer got = try_recv(fd(), received, bytes);
  if (got.what == outcome::eof || got.what == outcome::broken) {
    throw client_error{"wanted more bytes, " + how_it_ended(got)};
  }
  return received;
}

ending client::wait_for_end(milliseconds deadline) {
  const time_limit limit{deadline};
  std::string dropped;
  while (true) {
    const transfer got = try_recv(fd(), dropped, chunk_bytes);
    dropped.clear();
    if (got.what == outcome::eof) return ending::eof;
    if (got.what == outcome::broken) return ending::reset;
    if (!may_continue(fd(), got, limit)) return ending::still_open;
  }
}

void client::shutdown_write() {
  common::check(::shutdown(fd(), SHUT_WR), "shutdown SHUT_WR");
}

void client::reset() {
  reset_on_close(fd());
  close();
}

void client::close() {
  socket_.reset();
}

std::size_t client::unacknowledged_bytes() const {
  int bytes = 0;
  common::check(::ioctl(fd(), SIOCOUTQ, &bytes), "ioctl SIOCOUTQ");
  return static_cast<std::size_t>(bytes);
}

std::size_t client::send_window_bytes() const {
  ::tcp_info info{};
  ::socklen_t size = sizeof info;
  common::check(::getsockopt(fd(), IPPROTO_TCP, TCP_INFO, &info, &size), "getsockopt TCP_INFO");
  return info.tcpi_snd_wnd;
}

}  // namespace course_test
