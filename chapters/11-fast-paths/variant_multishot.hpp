// SPDX-License-Identifier: MIT
// The multishot kind: one RECV for all bytes that a client sends, as in chapter 10.
// Lifetime serve_multishot() returns when a stop was asked for and every client has gone; the
//          context must outlive it.
// Rule     only the RECV is multishot: clients are accepted as in every other kind.
#pragma once

#include <utility>

#include "buffer_pool.hpp"
#include "buffer_ring.hpp"
#include "echo_service.hpp"
#include "io_context.hpp"
#include "stream_echo.hpp"
#include "task.hpp"
#include "unique_fd.hpp"

namespace uring {

inline task<> serve_multishot(io_context& context, common::unique_fd listener, int stop_fd,
                              buffer_options buffers) {
  buffer_ring supply{context, 0, buffers.count};
  buffer_pool pool{context, supply, buffers};
  echo_service<stream_echo> service{context, std::move(listener), stop_fd, pool};
  co_await service.serve_until_stopped();
}

}  // namespace uring
