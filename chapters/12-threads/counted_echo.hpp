// SPDX-License-Identifier: MIT
// Chapter 10's echo, and a count of the clients that it has served.
// Lifetime the count, the pool and the sources must outlive every run().
// Threads  the one that runs the queue.
#pragma once

#include <cstddef>

#include "buffer_pool.hpp"
#include "cancel_source.hpp"
#include "stream_echo.hpp"
#include "task.hpp"

namespace uring {

class counted_echo {
 public:
  counted_echo(std::size_t& served, buffer_pool& pool, cancel_source& waiting,
               cancel_source& given_up) noexcept
      : served_{served}, echo_{pool, waiting, given_up} {}

  task<> run(int socket) {
    ++served_;
    return echo_.run(socket);
  }

 private:
  std::size_t& served_;
  stream_echo echo_;
};

}  // namespace uring
