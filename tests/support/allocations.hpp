// SPDX-License-Identifier: MIT
// How many blocks this program got from operator new, and how many of them it still holds.
// Owns     nothing; the counts are global.
// Threads  any.
// Rule     it replaces operator new. So it is no part of test-support: a chapter's tests link
//          test-allocations if they count.
#pragma once

#include <cstddef>

namespace course_test {

// How many blocks were given out so far.
[[nodiscard]] std::size_t allocations() noexcept;

// How many of them were not given back.
[[nodiscard]] std::ptrdiff_t live_allocations() noexcept;

// How many blocks `work` took and did not give back. No CHECK in it: Catch2 keeps messages.
template <typename Work>
std::ptrdiff_t blocks_left_by(Work&& work) {
  const std::ptrdiff_t before = live_allocations();
  work();
  return live_allocations() - before;
}

}  // namespace course_test
