// SPDX-License-Identifier: MIT
// How many blocks this program got from operator new, and how many of them it still holds. And
// memory whose use after it was given back ends the program, in a build without a sanitizer, too.
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

// Each block that operator new gives to this thread has a page of its own as long as one of these
// lives. When it is given back, nobody else gets that page: to touch it raises SIGSEGV, always. Has
// no effect under AddressSanitizer, which says more about such a use, nor under ThreadSanitizer
// with Clang, which keeps operator new to itself.
class [[nodiscard]] fenced_memory {
 public:
  fenced_memory() noexcept;
  fenced_memory(fenced_memory&&) = delete;
  ~fenced_memory();
};

}  // namespace course_test
