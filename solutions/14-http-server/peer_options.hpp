// SPDX-License-Identifier: MIT
// The command-line options of 14's peers, and their limits of time and size.
// Lifetime the flag_set must not outlive peer_command_line.
// Errors   a value out of its range ends the program with a sentence and status 2, in parse().
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "flags.hpp"

namespace uring::http {

using peer_clock = std::chrono::steady_clock;

struct peer_options {
  std::string root = ".";
  std::chrono::milliseconds patience_ms{30'000};  // for a client's next byte, in or out
};

inline constexpr std::size_t peer_piece_bytes = 16 * 1024;             // room for one recv
inline constexpr std::size_t peer_goodbye_bytes_max = 1 << 20;         // read after the last answer
inline constexpr std::chrono::milliseconds peer_goodbye_ms{2000};      // until the client's FIN
inline constexpr std::chrono::milliseconds peer_accept_retry_ms{100};  // when out of descriptors
inline constexpr std::chrono::milliseconds peer_stop_grace_ms{1000};   // for answers under way

// Makes close() drop the unsent bytes and send a reset: half an answer must not look whole.
inline void close_will_reset(int socket) noexcept {
  const ::linger at_once{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

class peer_command_line {
 public:
  explicit peer_command_line(common::flag_set& flags) {
    constexpr std::int64_t day_ms = 86'400'000;
    flags.add("--root", root_, "The folder that is served");
    flags.add("--patience-ms", patience_ms_, 10, day_ms, "For a client that is silent or stuck");
  }
  peer_command_line(peer_command_line&&) = delete;  // the flag_set holds our addresses

  [[nodiscard]] peer_options options() const {
    return {.root = root_, .patience_ms = std::chrono::milliseconds{patience_ms_}};
  }

 private:
  std::string root_ = ".";
  std::int64_t patience_ms_ = 30'000;
};

}  // namespace uring::http
