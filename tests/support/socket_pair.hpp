// SPDX-License-Identifier: MIT
// Sockets inside the test: two connected ones, one end of them for the code under test; a listener.
// Owns     its descriptors.
// Lifetime as long as the object.
// Threads  one thread an end.
// Errors   std::system_error.
#pragma once

#include <netinet/in.h>

#include <cstdint>

#include "unique_fd.hpp"

namespace course_test {

struct socket_pair {
  common::unique_fd ours;    // the test's end
  common::unique_fd theirs;  // goes to the code under test
};

struct socket_pair_options {
  int send_buffer_bytes = 0;     // of `theirs`: small makes its sends short; 0: the default
  int receive_buffer_bytes = 0;  // of `ours`
};

// Both ends block. TCP over 127.0.0.1, so that half-close, reset and short sends are the real ones.
[[nodiscard]] socket_pair tcp_pair(const socket_pair_options& options = {});
// AF_UNIX: cheap, and a blocked send is reproducible to the byte.
[[nodiscard]] socket_pair unix_pair(const socket_pair_options& options = {});

// Somebody else's listener on 127.0.0.1, for a server that finds its port taken.
struct tcp_listener {
  common::unique_fd socket;
  std::uint16_t port = 0;
};
[[nodiscard]] tcp_listener listen_on_any_port(int send_buffer_bytes = 0);

// A port of 127.0.0.1 where a connect is refused: it is taken, and nobody listens.
class deaf_port {
 public:
  deaf_port();
  [[nodiscard]] std::uint16_t number() const { return number_; }

 private:
  common::unique_fd socket_;
  std::uint16_t number_;
};

// 127.0.0.1 and a port, as connect(2) wants it.
[[nodiscard]] ::sockaddr_in loopback(std::uint16_t port);
[[nodiscard]] std::uint16_t port_of(int socket);

void set_nonblocking(int fd);
void reset_on_close(int fd);  // SO_LINGER 0: the next close() sends a RST

}  // namespace course_test
