// SPDX-License-Identifier: MIT
// Waits for several tasks: with MISTAKE for tasks whose results no vector can hold.
#include <utility>
#include <vector>

#include "sync_wait.hpp"

#ifdef MISTAKE
using result = void;
#else
using result = int;
#endif

auto wait(std::vector<uring::task<result>> all) {
  return uring::sync_wait_all(std::move(all));
}
