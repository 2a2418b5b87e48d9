// SPDX-License-Identifier: MIT
// A client that sends and does not read, so that a server has to wait for it.
// Threads  the client's.
// Errors   client_error if the connection ends meanwhile.
#pragma once

#include <cstddef>

#include "client.hpp"

namespace course_test {

// Small kernel buffers, so that the server's echo soon has to wait.
inline constexpr client_options small_buffers{.receive_buffer_bytes = 8 * 1024,
                                              .send_buffer_bytes = 64 * 1024};

// The same, for a server that sends 4 KiB at a time: 8 KiB hold two such sends, and each would fit
// whole or wait. With these buffers its sends are short.
inline constexpr client_options short_send_buffers{.receive_buffer_bytes = 4 * 1024,
                                                   .send_buffer_bytes = 64 * 1024};

inline constexpr milliseconds stall_ms{300};

// Nothing can be in flight in a connection beyond this: both ends' largest kernel buffers.
[[nodiscard]] std::size_t kernel_buffer_bytes_max();

// Sends pattern(0, …) and reads nothing, until the server has taken no more for a while, or all of
// bytes_max. Returns how much it took.
[[nodiscard]] std::size_t send_until_stalled(client& peer, std::size_t bytes_max,
                                             milliseconds a_while = stall_ms);

// The same, until the server leaves unread what has arrived, and has room for more.
[[nodiscard]] std::size_t send_until_unread(client& peer, std::size_t bytes_max);

}  // namespace course_test
