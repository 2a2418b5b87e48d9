// SPDX-License-Identifier: MIT
// The waits of a service at its end, each with a time limit.
// Lifetime everything that is passed by reference must outlive the task.
// Threads  the one that runs the queue.
// Errors   none is thrown; a sentence goes to stderr.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cancel_source.hpp"
#include "counters.hpp"
#include "http_site.hpp"
#include "log.hpp"
#include "operations.hpp"
#include "task.hpp"
#include "when_any.hpp"

namespace uring::http {

inline constexpr std::chrono::milliseconds last_lines_ms{1000};
inline constexpr std::chrono::milliseconds stuck_ms{5000};  // after the time to drain

inline task<> end_after(cancel_source& source, std::chrono::milliseconds time) {
  (void)co_await timeout_op(source, time);
}

// A log that takes no bytes, such as a full pipe, delays the end by last_lines_ms at most.
inline task<> write_last_lines(cancel_source& source, http_site& site) {
  (void)co_await when_any(source, site.log.write_out(source), end_after(source, last_lines_ms));
  const std::uint64_t lost = site.counted_here.read(counted::log_lines_lost);
  if (lost > 0) common::log("the access log lacks " + std::to_string(lost) + " lines");
}

// The kernel may be unable to end a wait for a file, see file_requests.hpp. So if `source` is not
// canceled soon enough after a stop, this ends the program with status 1. The process is gone as
// soon as the kernel lets it go.
inline task<> exit_if_stuck(cancel_source& source, int stop_fd, std::chrono::milliseconds drain) {
  (void)co_await poll_op(source, stop_fd, POLLIN);
  (void)co_await timeout_op(source, drain + stuck_ms);
  if (source.is_canceled()) co_return;
  common::log("a file did not answer, and was given up");
  std::_Exit(1);
}

}  // namespace uring::http
