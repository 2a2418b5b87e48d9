// SPDX-License-Identifier: MIT
// Awaits a task that has a name: with MISTAKE as if it could be awaited again.
#include <utility>

#include "task.hpp"

uring::task<int> answer() {
  co_return 42;
}

uring::task<int> use() {
  uring::task<int> once = answer();
#ifdef MISTAKE
  const int number = co_await once;
#else
  const int number = co_await std::move(once);
#endif
  co_return number;
}
