// SPDX-License-Identifier: MIT
// 02-stall: one connection without a loop. Its client sends, reads nothing, and then reads.
//
//   ./course run 02:stall
//
// Watch how many bytes the connection keeps, and which event it waits for.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <iostream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "connection.hpp"
#include "errors.hpp"
#include "local_pair.hpp"
#include "program_main.hpp"

namespace {

constexpr std::size_t message_bytes = 64 * 1024;
constexpr int send_buffer_bytes = 16 * 1024;  // less than the message: the socket fills up

void must_be_open(epoll::state after) {
  if (after == epoll::state::closed) throw std::runtime_error{"the connection says closed"};
}

std::size_t read_what_there_is(int socket) {
  std::vector<std::byte> echo(message_bytes);
  const auto got = ::recv(socket, echo.data(), echo.size(), MSG_DONTWAIT);
  if (got <= 0) throw std::runtime_error{"nothing more comes, and not all bytes have come back"};
  return static_cast<std::size_t>(got);
}

void stall() {
  common::local_pair sockets;
  const int size = send_buffer_bytes;
  common::check(::setsockopt(sockets.ours.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size),
                "setsockopt SO_SNDBUF");
  common::check(::fcntl(sockets.ours.get(), F_SETFL, O_NONBLOCK), "fcntl O_NONBLOCK");
  const int client = sockets.theirs.get();
  epoll::connection server{std::move(sockets.ours)};
  static std::array<std::byte, message_bytes> scratch;

  const std::vector<std::byte> message(message_bytes);
  const auto sent = common::check(::send(client, message.data(), message.size(), 0), "send");
  std::cout << "the client sends " << sent << " bytes and reads nothing\n";
  must_be_open(server.on_readable(scratch));
  std::cout << "  the server keeps " << server.unsent_bytes() << " bytes\n";
  for (std::size_t left = message_bytes; left > 0;) {
    const std::size_t got = read_what_there_is(client);
    left -= got;
    std::cout << "the client reads " << got << " bytes\n" << std::flush;
    if (server.unsent_bytes() > 0) must_be_open(server.on_writable());
    const char* const event = server.wanted_events() == EPOLLOUT ? "EPOLLOUT" : "EPOLLIN";
    std::cout << "  the server keeps " << server.unsent_bytes() << " bytes and waits for " << event
              << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 02: one connection whose client does not read, by hand."};
  return common::program_main(argc, argv, flags, [] { stall(); });
}
