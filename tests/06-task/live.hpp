// SPDX-License-Identifier: MIT
// What must not leak: objects that live in frames, and memory.
// Owns     nothing; the counts are the program's.
// Lifetime none.
// Threads  any.
// Errors   none.
#pragma once

#include <cstddef>

namespace course_test {

// Stands in a frame as a parameter or a local, so that it lives exactly as long as that does.
class counted {
 public:
  counted() noexcept { ++live_; }
  counted(const counted&) noexcept {
    ++live_;
    ++copies_;
  }
  counted(counted&&) noexcept { ++live_; }
  counted& operator=(const counted&) = delete;
  ~counted() { --live_; }

  [[nodiscard]] static int live() noexcept { return live_; }
  [[nodiscard]] static int copies() noexcept { return copies_; }

 private:
  static inline int live_ = 0;
  static inline int copies_ = 0;
};

// How many blocks operator new has given out in this program that were not given back (live.cpp).
[[nodiscard]] std::ptrdiff_t live_allocations() noexcept;

// How many blocks `work` took and did not give back. No CHECK in it: Catch2 keeps messages.
template <typename Work>
std::ptrdiff_t blocks_left_by(Work&& work) {
  const std::ptrdiff_t before = live_allocations();
  work();
  return live_allocations() - before;
}

// const live_scope before; { … } CHECK(before.leaked_objects() == 0);
class [[nodiscard]] live_scope {
 public:
  [[nodiscard]] int leaked_objects() const noexcept { return counted::live() - objects_; }

 private:
  int objects_ = counted::live();
};

}  // namespace course_test
