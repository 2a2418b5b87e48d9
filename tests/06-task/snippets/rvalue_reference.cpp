// SPDX-License-Identifier: MIT
// A task that returns what dies with its frame: with MISTAKE as a reference.
#include "task.hpp"

#ifdef MISTAKE
using result = int&&;
#else
using result = int;
#endif

uring::task<result> answer() {
  co_return 42;
}
