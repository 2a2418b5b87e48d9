// SPDX-License-Identifier: MIT
// How often this program has asked for memory.
// Owns     nothing.
// Lifetime none.
// Threads  any.
// Errors   under ThreadSanitizer, which has an operator new of its own, the count stays 0.
#pragma once

#include <cstddef>

namespace course_test {

[[nodiscard]] std::size_t allocations() noexcept;

}  // namespace course_test
