// SPDX-License-Identifier: MIT
// 06-stack: how far the stack grows with every await.
//
//   ./course run 06:stack
//   ./course run 06:stack-calls
//   ./course trace 06:stack -- 3
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "eager_task.hpp"
#include "sync_wait.hpp"
#include "task.hpp"

namespace {

struct stack_watch {
  int awaits;
  std::uintptr_t first = 0;
  std::uintptr_t last = 0;

  void look() {
    last = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if (first == 0) first = last;
  }
  [[nodiscard]] double bytes_per_await() const {
    return static_cast<double>(first - last) / awaits;  // the stack grows towards 0
  }
};

uring::task<int> leaf(stack_watch& watch) {
  watch.look();
  co_return 1;
}

uring::task<int> loop(stack_watch& watch) {
  int total = 0;
  for (int i = 0; i <= watch.awaits; ++i) total += co_await leaf(watch);
  co_return total;
}

uring::task<int> chain(stack_watch& watch, int depth) {
  watch.look();
  if (depth == 0) co_return 0;
  const int below = co_await chain(watch, depth - 1);
  co_return below + 1;
}

naive::eager_task<std::suspend_always> eager_leaf(stack_watch& watch) {
  watch.look();
  co_return 1;
}

naive::eager_task<std::suspend_always> eager_loop(stack_watch& watch) {
  int total = 0;
  for (int i = 0; i <= watch.awaits; ++i) total += co_await eager_leaf(watch);
  co_return total;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): only missing memory throws, and may end the program
int main(int argc, char** argv) {
  const int awaits = argc > 1 ? std::atoi(argv[1]) : 1000;  // small enough for any stack
  stack_watch in_loop{awaits};
  stack_watch in_chain{awaits};
  stack_watch in_eager_loop{awaits};
  (void)uring::sync_wait(loop(in_loop));
  (void)uring::sync_wait(chain(in_chain, awaits));
  const auto eager = eager_loop(in_eager_loop);
  std::cout << "stack bytes per await, task, in a loop: " << in_loop.bytes_per_await() << '\n'
            << "stack bytes per await, task, in a chain: " << in_chain.bytes_per_await() << '\n'
            << "stack bytes per await, eager task, in a loop: " << in_eager_loop.bytes_per_await()
            << '\n';
}
