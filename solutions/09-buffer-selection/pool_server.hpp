// SPDX-License-Identifier: MIT
// Chapter 08's service with this chapter's echo. Both servers of the chapter run it.
// Lifetime serve_from_pool() returns when a stop was asked for and every client has gone; the
//          context and the pool must outlive it.
#pragma once

#include <utility>

#include "buffer_pool.hpp"
#include "echo_service.hpp"
#include "io_context.hpp"
#include "pool_echo.hpp"
#include "task.hpp"
#include "unique_fd.hpp"

namespace uring {

inline task<> serve_from_pool(io_context& context, common::unique_fd listener, int stop_fd,
                              buffer_pool& pool) {
  echo_service<pool_echo> service{context, std::move(listener), stop_fd, pool};
  co_await service.serve_until_stopped();
}

}  // namespace uring
