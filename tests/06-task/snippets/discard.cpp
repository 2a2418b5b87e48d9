// SPDX-License-Identifier: MIT
// Calls a coroutine: with MISTAKE as if that ran it.
#include "task.hpp"

uring::task<> work() {
  co_return;
}

uring::task<> use() {
#ifdef MISTAKE
  work();
#else
  co_await work();
#endif
  co_return;
}
