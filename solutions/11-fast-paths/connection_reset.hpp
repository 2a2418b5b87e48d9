// SPDX-License-Identifier: MIT
// Ends a connection whose peer does not take what we have sent: the kernel drops those bytes.
// Lifetime reset_on_cancel must end before its source does, and before the socket is closed.
// Threads  the one that runs the queue.
// Rule     the peer sees a reset, ECONNRESET, and not the EOF that follows a complete answer.
// See      connect(2): AF_UNSPEC, tcp(7)
#pragma once

#include <sys/socket.h>

#include "cancel_source.hpp"

namespace uring {

// Drops the bytes that wait to be sent, so that a zero-copy send gets its notification. The
// descriptor stays open. The call does nothing to a Unix stream socket.
inline void reset_connection(int socket) noexcept {
  ::sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  (void)::connect(socket, &nobody, sizeof nobody);
}

// const reset_on_cancel hang_up{source, socket}: until the end of the enclosing block, a cancel of
// `source` resets the connection.
class [[nodiscard("it needs a name to live until the end of the scope")]] reset_on_cancel final
    : cancel_target {
 public:
  reset_on_cancel(cancel_source& source, int socket) noexcept : socket_{socket} {
    source.watch(*this);
  }

 private:
  void ask_to_end() override { reset_connection(socket_); }

  int socket_;
};

}  // namespace uring
