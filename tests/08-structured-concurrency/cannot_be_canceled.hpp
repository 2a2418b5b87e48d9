// SPDX-License-Identifier: MIT
// A target whose cancel fails, as when the ring takes no more requests.
// Lifetime it must outlive the source that watches it.
// Errors   ask_to_end() throws std::runtime_error, "no more requests".
#pragma once

#include <stdexcept>

#include "cancel_source.hpp"

namespace course_test {

class cannot_be_canceled final : public uring::cancel_target {
 public:
  void ask_to_end() override { throw std::runtime_error{"no more requests"}; }
};

}  // namespace course_test
