// SPDX-License-Identifier: MIT
// Echoes one client's bytes with blocking calls: the thread sleeps until a call can go on.
// Owns     nothing: the caller keeps the descriptor open until the function has returned.
// Lifetime the bytes given to send_all() must live until it returns.
// Threads  one thread uses a socket at a time; the functions here share nothing.
// Errors   how a connection ends is a value, not an exception, because resets happen every day.
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
  peer_gone,      // the connection failed, such as by a reset: nothing more can be delivered
};

constexpr std::size_t buffer_bytes = 16 * 1024;

enum class [[nodiscard]] sent { all, failed };

// Sends every byte of `data`. A blocking send() may still take less than it was given: go on from
// where it stopped. If a signal interrupts it (EINTR), call it again. Any other failure is
// sent::failed. No failure may raise SIGPIPE.
inline sent send_all(int socket, std::span<const std::byte> data) {
  COURSE_TODO("01.2");
}

// Sends back every byte that arrives before the peer's FIN, then returns peer_finished. A signal
// that interrupts recv() (EINTR) says nothing about the peer. If recv() fails otherwise, or if an
// echo cannot be sent, the peer is gone.
inline ending echo_until_eof(int socket) {
  std::array<std::byte, buffer_bytes> buffer;
  COURSE_TODO("01.3");
}

}  // namespace blocking
