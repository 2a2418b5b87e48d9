// SPDX-License-Identifier: MIT
// Where the server is, and connections to it.
// Owns     what connect_many() returns is the caller's.
// Errors   std::invalid_argument for a host that is no address; std::runtime_error if the machine
//          has too few descriptors or ports for the run; std::system_error if it has no socket to
//          give. A server that refuses, resets or does not answer is a fault, and is counted.
// Rule     connections are made a few at a time, so that a server with a short backlog keeps up.
// See      connect(2), ip(7), tcp(7)
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fault.hpp"
#include "unique_fd.hpp"

namespace loadgen {

class endpoint {
 public:
  // `host` is a numeric IPv4 or IPv6 address.
  endpoint(const std::string& host, std::uint16_t port);

  // "127.0.0.1:9000", as in a URL.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

  // A socket whose connection is under way: writable when that is over, and then errno is in
  // SO_ERROR. Nothing, and errno, if it failed at once.
  [[nodiscard]] common::unique_fd start_connecting() const;

 private:
  ::sockaddr_storage address_{};
  ::socklen_t address_bytes_ = 0;
  std::string text_;
};

// What a finished connect came to: 0 or its errno.
[[nodiscard]] int connect_error(int socket);

// Raises the descriptor limit if it can, and throws with what to do if `connections` are too many
// for this process or for the local ports.
void prepare_limits(std::size_t connections);

struct connected {
  std::vector<common::unique_fd> sockets;
  fault_tally faults;
  bool interrupted = false;  // by a signal
};

// Makes `count` connections. Gives up when none was made or refused for `patience`, or when
// `stop_fd` becomes readable.
[[nodiscard]] connected connect_many(const endpoint& server, std::size_t count,
                                     std::chrono::nanoseconds patience, int stop_fd);

}  // namespace loadgen
