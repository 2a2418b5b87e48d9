// SPDX-License-Identifier: MIT
// An object whose class counts how many there are, so that a test can count frames.
// Owns     nothing; the counts are global.
// Threads  one at a time.
// Rule     as a parameter by value, or as a local, it lives as long as the coroutine's frame.
#pragma once

namespace course_test {

class counted {
 public:
  counted() noexcept { ++live_; }
  counted(const counted&) noexcept {
    ++live_;
    ++copies_;
  }
  counted(counted&&) noexcept { ++live_; }
  counted& operator=(const counted&) = delete;
  counted& operator=(counted&&) noexcept = default;
  ~counted() { --live_; }

  [[nodiscard]] static int live() noexcept { return live_; }
  [[nodiscard]] static int copies() noexcept { return copies_; }

 private:
  static inline int live_ = 0;
  static inline int copies_ = 0;
};

// const live_scope before; { … } CHECK(before.leaked_objects() == 0);
class [[nodiscard]] live_scope {
 public:
  [[nodiscard]] int leaked_objects() const noexcept { return counted::live() - objects_; }

 private:
  int objects_ = counted::live();
};

}  // namespace course_test
