// SPDX-License-Identifier: MIT
// 01-client: sends one message after the other, compares each echo, and prints how long it took.
//
//   ./course run 01:client -- --port 9000 --requests 10000 --size 1024
//   ./course run 01:client -- --port 9000 --requests 10 --pause-ms 1000    a slow talker
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "echo.hpp"
#include "errors.hpp"
#include "listener.hpp"
#include "program_main.hpp"
#include "unique_fd.hpp"

namespace {

// We send a whole message before we read any of its echo. If a message had more bytes than the
// socket buffers of both sides hold, each side would wait until the other one reads.
constexpr std::int64_t message_bytes_max = 64 * 1024;

using clock = std::chrono::steady_clock;

struct client_flags {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::int64_t requests = 10'000;
  std::int64_t message_bytes = 1024;
  std::int64_t pause_ms = 0;
};

common::unique_fd connect_to(const client_flags& flags) {
  const ::sockaddr_in address = blocking::ipv4_address(flags.host, flags.port);
  common::unique_fd server{
      common::check(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")};
  // We measure only the server, so Nagle's algorithm must not hold the client's messages back.
  blocking::set_option(server.get(), IPPROTO_TCP, TCP_NODELAY, "TCP_NODELAY");
  common::check(
      ::connect(server.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address),
      "connect to " + flags.host + ":" + std::to_string(flags.port));
  return server;
}

// --8<-- [start:receive-all]
// A stream has no messages: one recv may bring less than was sent in one send.
void receive_all(int socket, std::span<std::byte> message) {
  while (!message.empty()) {
    const ::ssize_t received = ::recv(socket, message.data(), message.size(), 0);
    common::check(received, "recv from the server");
    if (received == 0) throw std::runtime_error{"the server closed the connection"};
    message = message.subspan(static_cast<std::size_t>(received));
  }
}
// --8<-- [end:receive-all]

// Consecutive messages differ, so that a late echo of the previous message is noticed.
void fill(std::span<std::byte> message, std::int64_t request) {
  for (std::size_t i = 0; i < message.size(); ++i) {
    message[i] = static_cast<std::byte>(static_cast<std::size_t>(request) * 31 + i);
  }
}

// "200 echoes of 1024 bytes in 12 ms", or "1 echo of 1 byte in 9.0 s".
std::string summary(const client_flags& flags, clock::duration took) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
  std::ostringstream text;
  text << flags.requests << (flags.requests == 1 ? " echo" : " echoes") << " of "
       << flags.message_bytes << (flags.message_bytes == 1 ? " byte" : " bytes") << " in ";
  if (ms < 1000) {
    text << ms << " ms";
  } else {
    text << std::fixed << std::setprecision(1) << static_cast<double>(ms) / 1000 << " s";
  }
  return text.str();
}

void converse(const client_flags& flags) {
  const clock::time_point start = clock::now();
  const common::unique_fd server = connect_to(flags);
  std::vector<std::byte> message(static_cast<std::size_t>(flags.message_bytes));
  std::vector<std::byte> echo(message.size());
  for (std::int64_t request = 0; request < flags.requests; ++request) {
    fill(message, request);
    if (blocking::send_all(server.get(), message) == blocking::sent::failed) {
      common::throw_errno("send to the server");
    }
    receive_all(server.get(), echo);
    if (echo != message) {
      throw std::runtime_error{"echo " + std::to_string(request) + " differs from its message"};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{flags.pause_ms});
  }
  std::cout << summary(flags, clock::now() - start) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  client_flags client;
  common::flag_set flags{"Chapter 01: a blocking client, one message at a time."};
  flags.add("--host", client.host, "Address of the server");
  flags.add("--port", client.port, "Port of the server, from its first line");
  flags.add("--requests", client.requests, 1, 1'000'000'000, "Messages to send");
  flags.add("--size", client.message_bytes, 1, message_bytes_max, "Bytes in a message");
  flags.add("--pause-ms", client.pause_ms, 0, 60'000, "Wait this long after each echo");
  return common::program_main(argc, argv, flags, [&] { converse(client); });
}
