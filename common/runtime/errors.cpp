// SPDX-License-Identifier: MIT
#include "errors.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace common {
namespace {

// std::system_error appends the category's message to what(); ours already says it better.
class named_errno : public std::system_error {
 public:
  named_errno(int error, std::string what)
      : std::system_error{error, std::generic_category()}, what_{std::move(what)} {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

}  // namespace

std::string describe_errno(int error) {
  error = std::abs(error);
  const char* const name = ::strerrorname_np(error);
  if (name == nullptr) return fmt::format("error {}", error);
  return fmt::format("{} ({})", name, ::strerrordesc_np(error));
}

void throw_errno(std::string_view tried) {
  throw_error(errno, tried);
}

void throw_error(int error, std::string_view tried) {
  throw named_errno{std::abs(error), fmt::format("{}: {}", tried, describe_errno(error))};
}

accept_failure classify_accept_errno(int error) noexcept {
  switch (std::abs(error)) {
    case EAGAIN:
      return accept_failure::nothing_waiting;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return accept_failure::out_of_descriptors;
    case EBADF:
    case EFAULT:
    case EINVAL:
    case ENOTSOCK:
    case EOPNOTSUPP:
      return accept_failure::listener_broken;
    default:
      // accept(2): Linux passes on the new connection's own network errors, and they end only it.
      return accept_failure::try_again;
  }
}

}  // namespace common
