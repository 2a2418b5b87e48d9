// SPDX-License-Identifier: MIT
// How a request ended: a count or a descriptor, or an error.
// Owns     nothing; the caller takes ownership of a descriptor in it.
// Errors   a value that the caller has to look at. or_throw() throws it as a std::system_error, for
//          callers that cannot handle it.
// Rule     EOF is a count of 0, not an error. Ends that happen every day (reset, canceled, timed
//          out) are values; an exception is for a failure after which the program cannot go on.
// See      io_uring_enter(2) for what `res` holds, operation by operation
#pragma once

#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "errors.hpp"

namespace uring {

class [[nodiscard]] io_result {
 public:
  explicit io_result(std::int32_t res) noexcept : res_{res} {}

  [[nodiscard]] explicit operator bool() const noexcept { return res_ >= 0; }

  [[nodiscard]] std::size_t count() const noexcept {
    assert(res_ >= 0 && "look at the error first: it is no count");
    return static_cast<std::size_t>(res_);
  }

  [[nodiscard]] int fd() const noexcept { return res_; }  // negative if it failed

  [[nodiscard]] int error() const noexcept { return res_ < 0 ? -res_ : 0; }  // an errno, or 0

  // True if nothing has happened, and the same request may be made again.
  [[nodiscard]] bool is_passing() const noexcept { return res_ == -EINTR || res_ == -EAGAIN; }

  // Returns the count, or throws a std::system_error whose text begins with `tried`.
  std::size_t or_throw(std::string_view tried) const {
    if (res_ < 0) common::throw_error(res_, tried);
    return count();
  }

 private:
  std::int32_t res_;
};

}  // namespace uring
