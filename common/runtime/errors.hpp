// SPDX-License-Identifier: MIT
// Turns errno into a message that a reader can act on.
// Errors   all functions but those that describe or classify throw std::system_error, whose what()
//          begins with `tried`.
// Rule     call these right behind the call that failed, because any other call may change errno.
// See      errno(3)
#pragma once

#include <string>
#include <string_view>

namespace common {

// "ECONNRESET (Connection reset by peer)". Takes errno or its negative, so a CQE's res fits too.
[[nodiscard]] std::string describe_errno(int error);

// Throws std::system_error for errno; its what() is "TRIED: ECONNRESET (Connection reset by peer)".
[[noreturn]] void throw_errno(std::string_view tried);

// The same for a call that returns its error instead, as -errno or as errno.
[[noreturn]] void throw_error(int error, std::string_view tried);

// Returns the result of a system call, or throws if it is -1.
template <typename Result>
Result check(Result result, std::string_view tried) {
  if (result == -1) throw_errno(tried);
  return result;
}

// The failures of accept(2), by what the caller should do about them. `error` may be an errno or
// its negative, such as the `res` of a completion.
enum class accept_failure {
  try_again,           // this connection is gone or we were interrupted: accept the next one now
  nothing_waiting,     // EAGAIN: wait until the listener is readable
  out_of_descriptors,  // or of memory: accept nothing until something was freed
  listener_broken,     // the listening socket itself is at fault: stop serving
};
[[nodiscard]] accept_failure classify_accept_errno(int error) noexcept;

}  // namespace common
