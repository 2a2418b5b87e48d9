// SPDX-License-Identifier: MIT
// A listening TCP socket, ready for accept().
// Owns     the returned descriptor is the caller's.
// Errors   std::system_error; what() says what was tried, what came and, where we know, what to do.
// Rule     port 0 lets the kernel choose; announce() then tells which.
// See      socket(7), ip(7), listen(2)
#pragma once

#include <cstdint>
#include <string>

#include "unique_fd.hpp"

namespace common {

enum class blocking { yes, no };
// after_bind: the port is shared only after bind(), which fails if any other socket has the port. A
// program's first listener needs this, because then a second copy of the program fails at its own
// bind(), and takes none of the clients.
enum class reuse_port { no, yes, after_bind };

struct listen_options {
  blocking accepts = blocking::yes;
  reuse_port shared = reuse_port::no;  // several listeners on one port, one for each thread
  int backlog = 4096;                  // the kernel clamps it to net.core.somaxconn
};

// `host` is a numeric IPv4 or IPv6 address: a name would need a resolver, and a server has none.
[[nodiscard]] unique_fd listen_on(const std::string& host, std::uint16_t port,
                                  const listen_options& options = {});

// The port of a socket that is bound. The kernel has chosen it if listen_on() was given port 0.
[[nodiscard]] std::uint16_t port_of(int socket);

}  // namespace common
