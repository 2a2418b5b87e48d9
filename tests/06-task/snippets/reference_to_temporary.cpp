// SPDX-License-Identifier: MIT
// A task that returns a reference: with MISTAKE to what ends before anybody has it.
#include "task.hpp"

uring::task<const int&> answer(const int& number) {
#ifdef MISTAKE
  co_return number + 1;
#else
  co_return number;
#endif
}
