// SPDX-License-Identifier: MIT
// How a task has ended, in words that a failed check shows.
#pragma once

#include <exception>
#include <string>

#include "outcome.hpp"

namespace course_test {

// "well", or what was thrown.
[[nodiscard]] inline std::string how_it_ended(const uring::outcome<void>& ended) {
  if (ended.error() == nullptr) return "well";
  try {
    std::rethrow_exception(ended.error());
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace course_test
