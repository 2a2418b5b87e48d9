// SPDX-License-Identifier: MIT
// 06-eager: shows defects of the task that many people write first. Built with AddressSanitizer.
//
//   ./course run 06:eager -- --awaits 1
//   ./course run 06:eager -- --awaits 1000000 --stays
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "eager_task.hpp"

namespace {

template <typename AtEnd>
naive::eager_task<AtEnd> one() {
  co_return 1;
}

template <typename AtEnd>
naive::eager_task<AtEnd> sum(int awaits, int& total) {
  for (int i = 0; i < awaits; ++i) total += co_await one<AtEnd>();
  co_return total;
}

template <typename AtEnd>
int run(int awaits) {
  int total = 0;
  const naive::eager_task<AtEnd> all = sum<AtEnd>(awaits, total);
  return total;
}

}  // namespace

// Parses its flags by hand, because it has its own compiler flags and links nothing of the course.
int main(int argc, char** argv) {
  int awaits = 1;
  bool stays = false;  // suspended at the end, so that its owner alone destroys the frame
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag{argv[i]};
    if (flag == "--stays") {
      stays = true;
    } else if (flag == "--awaits" && i + 1 < argc) {
      awaits = std::atoi(argv[++i]);
    } else {
      std::cerr << "06-eager takes --awaits N and --stays\n";
      return 2;
    }
  }
  const int total = stays ? run<std::suspend_always>(awaits) : run<std::suspend_never>(awaits);
  std::cout << "the sum of " << awaits << " awaits: " << total << '\n';
}
