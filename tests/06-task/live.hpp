// SPDX-License-Identifier: MIT
// How much memory is held: what a test took and did not give back.
// Owns     nothing; the counts are the program's.
// Lifetime none.
// Threads  any.
// Errors   none.
#pragma once

#include <cstddef>

namespace course_test {

// How many blocks operator new has given out in this program that were not given back (live.cpp).
[[nodiscard]] std::ptrdiff_t live_allocations() noexcept;

// How many blocks `work` took and did not give back. No CHECK in it: Catch2 keeps messages.
template <typename Work>
std::ptrdiff_t blocks_left_by(Work&& work) {
  const std::ptrdiff_t before = live_allocations();
  work();
  return live_allocations() - before;
}

}  // namespace course_test
