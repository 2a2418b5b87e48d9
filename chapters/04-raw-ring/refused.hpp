// SPDX-License-Identifier: MIT
// A refusal by the kernel, as an exception whose message names the cause and says what to do.
// Threads  make it in the thread that was refused, because each thread has its own seccomp filter.
// Errors   none: code() holds the positive errno, and what() returns the message.
// Rule     the constructor takes what system_calls.hpp returned: -errno, with its sign.
// See      io_uring_setup(2) ERRORS, ./course doctor
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "errors.hpp"
#include "ring_advice.hpp"

namespace uring {

class refused : public std::system_error {
 public:
  refused(std::string_view tried, int result)
      : std::system_error{-result, std::generic_category()}, what_{sentence(tried, result)} {
    assert(result < 0 && "a result that is not negative is no refusal");
  }

  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }

 private:
  static std::string sentence(std::string_view tried, int result) {
    const std::string text = std::string{tried} + ": " + common::describe_errno(result);
    const std::optional<common::advice> told =
        common::advise_on_ring(-result, common::read_machine());
    return told ? text + ": " + told->cause + ". To do: " + told->fix : text;
  }

  std::string what_;
};

}  // namespace uring
