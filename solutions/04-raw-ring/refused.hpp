// SPDX-License-Identifier: MIT
// The kernel's no to a ring, in a sentence that says what stands behind it and what to do.
// Owns     its text.
// Lifetime none.
// Threads  make it in the thread that was refused: a seccomp filter belongs to a thread.
// Errors   it is one: code() holds the errno, what() the sentence.
// Rule     takes what system_calls.hpp returned, a negative errno, and not an errno.
// See      io_uring_setup(2) ERRORS, ./course doctor
#pragma once

#include <cassert>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include "advice.hpp"
#include "errors.hpp"

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
    std::string text = std::string{tried} + ": " + common::describe_errno(result);
    switch (-result) {
      case EPERM:   // seccomp, or kernel.io_uring_disabled
      case ENOSYS:  // an old kernel, or seccomp again
      case ENOMEM:  // locked memory
      case EACCES:
      case EMFILE:
      case ENFILE: {
        const doctor::advice told = doctor::advise(-result, {}, doctor::read_machine());
        return text + ": " + told.cause + ". To do: " + told.fix;
      }
      default:
        return text;
    }
  }

  std::string what_;
};

}  // namespace uring
