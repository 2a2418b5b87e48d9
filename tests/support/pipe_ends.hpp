// SPDX-License-Identifier: MIT
// A pipe inside the test.
// Owns     both ends.
// Lifetime as long as the object.
// Threads  one thread an end.
// Errors   std::system_error.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "errors.hpp"
#include "unique_fd.hpp"

namespace course_test {

struct pipe_ends {
  common::unique_fd read;
  common::unique_fd write;
};

// Both ends block, unless `flags` has O_NONBLOCK.
[[nodiscard]] inline pipe_ends make_pipe(int flags = O_CLOEXEC) {
  std::array<int, 2> fds{};
  common::check(::pipe2(fds.data(), flags), "pipe2");
  return {common::unique_fd{fds[0]}, common::unique_fd{fds[1]}};
}

}  // namespace course_test
