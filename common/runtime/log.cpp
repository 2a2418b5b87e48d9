// SPDX-License-Identifier: MIT
#include "log.hpp"

#include <errno.h>
#include <fmt/core.h>
#include <unistd.h>

#include <string>

namespace common {

void log(std::string_view message) {
  const int saved_errno = errno;  // a caller may still want to look at it
  const std::string line = fmt::format("{}: {}\n", ::program_invocation_short_name, message);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  errno = saved_errno;
}

}  // namespace common
