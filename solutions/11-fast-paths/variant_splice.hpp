// SPDX-License-Identifier: MIT
// The splice kind: the bytes go through a pipe, and never into this program's memory.
// Owns     a pipe for each client, in its frame.
// Lifetime as variant_client.hpp says.
// Threads  the one that runs the queue; the kernel's workers splice.
// Errors   how a connection ends concerns that client only. A client for which no pipe is left gets
//          the plain echo.
// Rule     a splice that waits blocks a worker thread of the kernel, so this kind polls first.
// See      splice(2), pipe(7)
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>

#include "file_operations.hpp"
#include "operations.hpp"
#include "splice_file.hpp"
#include "task.hpp"
#include "variant_client.hpp"
#include "variant_kinds.hpp"

namespace uring {

// The result is empty if the process has no descriptors left.
[[nodiscard]] inline std::optional<splice_pipe> open_pipe(std::size_t room) {
  try {
    return splice_pipe{room};
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

inline task<> echo_through_pipe(variant_client client, const splice_pipe& pipe, unsigned bytes) {
  constexpr std::int64_t no_offset = -1;
  const io_handle io = client.given_up;
  while (true) {
    const io_result ready = co_await poll_op(client.waiting, client.socket(), POLLIN);
    if (ready.is_passing()) continue;
    if (!ready) co_return;
    const io_result moved =
        co_await splice_op(io, client.socket(), no_offset, pipe.write_end(), no_offset, bytes);
    if (moved.is_passing()) continue;
    if (!moved || moved.count() == 0) co_return;
    auto left = static_cast<unsigned>(moved.count());
    while (left > 0) {
      const io_result sent =
          co_await splice_op(io, pipe.read_end(), no_offset, client.socket(), no_offset, left);
      if (sent.is_passing()) continue;
      if (!sent) co_return;
      left -= static_cast<unsigned>(sent.count());
    }
  }
}

inline task<> echo_splice(variant_client client, own_buffers& shared) {
  const std::optional<splice_pipe> pipe = open_pipe(shared.bytes);
  if (pipe.has_value()) {
    co_await echo_through_pipe(client, *pipe, static_cast<unsigned>(shared.bytes));
  } else {
    co_await echo_recv_send(client, shared);
  }
}

}  // namespace uring
