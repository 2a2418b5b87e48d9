// SPDX-License-Identifier: MIT
// The kinds of waits of a server, their lengths, and the clock that measures them.
#pragma once

#include <time.h>

#include <array>
#include <chrono>
#include <cstddef>

namespace uring::http {

using limit_clock = std::chrono::steady_clock;

// Exact to a few milliseconds, as the kernel's own tick is, for a third of the exact clock's cost.
[[nodiscard]] inline limit_clock::time_point coarse_now() noexcept {
  ::timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return limit_clock::time_point{std::chrono::seconds{now.tv_sec} +
                                 std::chrono::nanoseconds{now.tv_nsec}};
}

// The things that the server waits for, each with a length of its own: the first byte of a request,
// the rest of its head, its body, the disk, room in the socket for an answer, the client's FIN.
enum class wait_for : std::size_t { request, head, body, file, room, goodbye };
inline constexpr std::size_t wait_kinds = 6;

using limit_lengths = std::array<std::chrono::milliseconds, wait_kinds>;

}  // namespace uring::http
