// SPDX-License-Identifier: MIT
// A parameter that tells how many frames hold one: frames are counted, not guessed.
// Owns     nothing.
// Lifetime none.
// Threads  one.
// Errors   none.
// Rule     give it to a coroutine by value; when all has ended, alive is what it was.
#pragma once

namespace course_test {

class counted {
 public:
  static inline int alive = 0;

  counted() noexcept { ++alive; }
  counted(const counted&) noexcept { ++alive; }
  counted& operator=(const counted&) noexcept = default;
  ~counted() { --alive; }
};

}  // namespace course_test
