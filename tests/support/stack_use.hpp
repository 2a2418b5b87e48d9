// SPDX-License-Identifier: MIT
// How far apart on the stack one function was called: what a chain of calls in calls would need.
// Threads  one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace course_test {

class stack_use {
 public:
  // Of a stack of 8 MiB; a hundred thousand calls in calls need more than that.
  static constexpr std::size_t little = 256 * 1024;

  [[gnu::noinline]] void look() {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    lowest_ = std::min(lowest_, here);
    highest_ = std::max(highest_, here);
  }

  [[nodiscard]] std::size_t bytes() const { return highest_ - lowest_; }

 private:
  std::uintptr_t lowest_ = std::numeric_limits<std::uintptr_t>::max();
  std::uintptr_t highest_ = 0;
};

}  // namespace course_test
