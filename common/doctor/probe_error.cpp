// SPDX-License-Identifier: MIT
#include "probe_error.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstdlib>

#include "errors.hpp"

namespace doctor {

probe_error::probe_error(std::string_view tried, int error)
    : std::runtime_error{fmt::format("{}: {}", tried, common::describe_errno(error))},
      error_{std::abs(error)} {}

probe_error::probe_error(const std::string& difference) : std::runtime_error{difference} {}

int need(int result, std::string_view tried) {
  if (result < 0) throw probe_error{tried, result};
  return result;
}

void need_bit(unsigned features, unsigned bit, std::string_view name) {
  if ((features & bit) != 0) return;
  throw probe_error{fmt::format("io_uring_setup does not report {}", name), EOPNOTSUPP};
}

}  // namespace doctor
