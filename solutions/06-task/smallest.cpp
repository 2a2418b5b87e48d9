// SPDX-License-Identifier: MIT
// 06-smallest: a function that stops in its middle, and goes on later.
//
//   ./course run 06:smallest
#include <coroutine>
#include <iostream>

#include "pausing.hpp"
#include "program_main.hpp"

namespace {

using smallest::pausing;

// --8<-- [start:count]
pausing count() {
  std::cout << "  count: one\n";
  co_await std::suspend_always{};  // stop here
  std::cout << "  count: two\n";
}

void call_and_resume() {
  const pausing counting = count();
  std::cout << "the call has returned\n";
  counting.frame.resume();
  std::cout << "resume() has returned\n";
  counting.frame.destroy();
}
// --8<-- [end:count]

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 06: a function that stops in its middle."};
  return common::program_main(argc, argv, flags, call_and_resume);
}
