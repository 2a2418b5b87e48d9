// SPDX-License-Identifier: MIT
// An echo server that closes silent clients.
// Lifetime the context and `stop_fd` must outlive it.
// Threads  the one that runs the context.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "bounded_echo.hpp"
#include "echo_service.hpp"
#include "io_context.hpp"
#include "ring_options.hpp"
#include "task.hpp"
#include "unique_fd.hpp"

namespace uring {

inline constexpr unsigned sq_entries_for_pairs = 2;  // a request and its deadline, together

// Without `idle_timeout`, the server does not close silent clients.
inline task<> serve_idle_echo(io_context& context, common::unique_fd listener, int stop_fd,
                              std::optional<std::chrono::nanoseconds> idle_timeout) {
  echo_service<bounded_echo> service{context, std::move(listener), stop_fd, idle_timeout};
  co_await service.serve_until_stopped();
}

// Options with room for a request and its deadline.
[[nodiscard]] inline ring_options with_room_for_pairs(ring_options options) {
  options.sq_entries = std::max(options.sq_entries, sq_entries_for_pairs);
  return options;
}

}  // namespace uring
