// SPDX-License-Identifier: MIT
// Connects to the first of several addresses at which a server accepts the connection.
// Owns     nothing: the caller owns the returned socket. Sockets that did not connect are closed.
// Lifetime the queue must live until the task has ended.
// Threads  the one that runs the queue.
// Errors   std::runtime_error that says why each address failed; std::system_error from
//          socket(2).
// Rule     it tries the addresses in the order given: the resolver has put the best first.
// See      connect(2), rfc6724
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "operations.hpp"
#include "resolve.hpp"
#include "task.hpp"
#include "unique_fd.hpp"

namespace uring {

// `addresses` lives in the frame, because the kernel reads each address while it connects.
inline task<common::unique_fd> connect_to_any(io_handle io, std::vector<peer_address> addresses) {
  std::string refusals;
  for (const peer_address& each : addresses) {
    const int type = SOCK_STREAM | SOCK_CLOEXEC;
    common::unique_fd socket{::socket(each.family(), type, 0)};
    if (!socket.valid() && errno != EAFNOSUPPORT) common::throw_errno("socket");
    int error = EAFNOSUPPORT;
    if (socket.valid()) {
      const io_result connected = co_await connect_op(io, socket.get(), each.generic(), each.bytes);
      if (connected) co_return socket;
      error = connected.error();
    }
    refusals += (refusals.empty() ? "" : "; ") + each.text + ": " + common::describe_errno(error);
  }
  throw std::runtime_error{"connect: " + refusals};
}

}  // namespace uring
