// SPDX-License-Identifier: MIT
// Echoes one client's bytes with blocking calls: the thread sleeps until a call can go on.
// Owns     nothing: the caller keeps the descriptor open until the function has returned.
// Lifetime the bytes given to send_all() must live until it returns.
// Threads  one thread uses a socket at a time; the functions here share nothing.
// Errors   the end of a connection is a value, not an exception, because resets happen every day.
// See      recv(2), send(2), tcp(7)
#pragma once

#include <errno.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <span>

#include "todo.hpp"

namespace blocking {

enum class ending {
  peer_finished,  // FIN: every byte the peer sent has been echoed
  peer_gone,      // the connection failed, as after a reset, so nothing more can be delivered
};

constexpr std::size_t buffer_bytes = 16 * 1024;

enum class [[nodiscard]] sent { all, failed };

// Sends every byte of `data`, then returns sent::all. Call send() with MSG_NOSIGNAL, so that no
// failure raises SIGPIPE. Even a blocking send() may take fewer bytes than you passed. Then go on
// from where send() stopped. If a signal interrupts send() (EINTR), call send() again. After any
// other failure, return sent::failed.
inline sent send_all(int socket, std::span<const std::byte> data) {
  // --8<-- [start:task-01-2]
  while (!data.empty()) {
    const ::ssize_t taken = ::send(socket, data.data(), data.size(), MSG_NOSIGNAL);
    if (taken == -1) {
      if (errno == EINTR) continue;
      return sent::failed;
    }
    data = data.subspan(static_cast<std::size_t>(taken));
  }
  return sent::all;
  // --8<-- [end:task-01-2]
}

// Sends back every byte that arrives before the peer's FIN, then returns peer_finished. Receive
// into `buffer` with recv(), and send with send_all(). If a signal interrupts recv() (EINTR), call
// recv() again. If recv() fails for another reason, or if send_all() fails, return peer_gone.
inline ending echo_until_eof(int socket) {
  std::array<std::byte, buffer_bytes> buffer;
  // --8<-- [start:task-01-3]
  while (true) {
    const ::ssize_t received = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (received == 0) return ending::peer_finished;
    if (received == -1) {
      if (errno == EINTR) continue;
      return ending::peer_gone;
    }
    const auto message = std::span{buffer}.first(static_cast<std::size_t>(received));
    if (send_all(socket, message) == sent::failed) return ending::peer_gone;
  }
  // --8<-- [end:task-01-3]
}

}  // namespace blocking
