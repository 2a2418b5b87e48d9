// SPDX-License-Identifier: MIT
// Tasks of each kind of result that end without waiting: for tests of what awaits them.
// Threads  the one that starts them.
#pragma once

#include <memory>

#include "task.hpp"

namespace course_test {

inline uring::task<int> answer() {
  co_return 42;
}
inline uring::task<> nothing() {
  co_return;
}
inline uring::task<std::unique_ptr<int>> boxed() {
  co_return std::make_unique<int>(7);
}
inline uring::task<int&> itself(int& number) {
  co_return number;
}

}  // namespace course_test
