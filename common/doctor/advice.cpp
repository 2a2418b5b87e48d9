// SPDX-License-Identifier: MIT
#include "advice.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace doctor {
namespace {

// "6.18.44-foo" is {6, 18}; what is no version is {0, 0}.
std::pair<int, int> version_of(std::string_view text) {
  std::pair<int, int> version{0, 0};
  std::istringstream stream{std::string{text}};
  char dot = 0;
  stream >> version.first >> dot >> version.second;
  return version;
}

advice about_kernel(int error, std::string_view since, const machine& here) {
  if (since.empty()) since = "6.1";  // a feature that names no version is in every kernel from here
  if (version_of(here.kernel_release) < version_of(since)) {
    return {fmt::format("Linux has it from {} on, and this is {}", since, here.kernel_release),
            common::newer_kernel(here, since)};
  }
  if (here.filter == common::seccomp::filtered && error != 0) {
    return {"a seccomp filter is on this process, and it may have refused the call",
            common::lift_filter(here)};
  }
  return {fmt::format("Linux does it from {} on, but this kernel, {}, does not", since,
                      here.kernel_release),
          "update the kernel, or boot your distribution's own; then run ./course doctor again"};
}

}  // namespace

advice advise(int error, std::string_view since, const machine& here) {
  if (const std::optional<advice> told = common::advise_on_ring(error, here)) return *told;
  switch (error) {
    case ETIMEDOUT:
      return {"the kernel took the request, but did not complete it in time",
              "run ./course doctor again when the machine is idle; if it stays, update the kernel"};
    case EADDRNOTAVAIL:
    case ENETDOWN:
    case ENETUNREACH:
      return {"127.0.0.1 does not work here", "sudo ip link set lo up"};
    default:
      return about_kernel(error, since, here);
  }
}

}  // namespace doctor
