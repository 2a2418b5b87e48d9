// SPDX-License-Identifier: MIT
// Marks a thread that runs coroutines: while one of these objects lives, the thread must not block.
// Owns     nothing but a count for each thread.
// Lifetime the scope in which coroutines are resumed.
// Threads  any; each thread has its own count.
// Errors   forbid_blocking() throws std::logic_error on a marked thread.
// Rule     make one around every resume() in ordinary code. Nothing reports a resume() without one.
#pragma once

#include <stdexcept>

namespace uring {

class running_coroutines {
 public:
  running_coroutines() noexcept { ++nesting_; }
  running_coroutines(running_coroutines&&) = delete;
  ~running_coroutines() { --nesting_; }

  static void forbid_blocking() {
    if (nesting_ > 0) {
      throw std::logic_error{
          "to wait like this inside a coroutine would block the thread that has to finish the "
          "task: co_await it"};
    }
  }

 private:
  static thread_local inline int nesting_ = 0;
};

}  // namespace uring
