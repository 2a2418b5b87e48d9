// SPDX-License-Identifier: MIT
// 06-steps: one awaited call, step by step.
//
//   ./course run 06:steps
#include <iostream>
#include <string_view>
#include <utility>

#include "program_main.hpp"
#include "sync_wait.hpp"
#include "task.hpp"

namespace {

// A parameter that prints when it is made and destroyed, which shows how long the frame lives.
class traced {
 public:
  explicit traced(std::string_view name) : name_{name} {}
  traced(traced&& other) noexcept : name_{std::exchange(other.name_, {})} {
    std::cout << "      a frame is made for " << name_ << '\n';
  }
  ~traced() {
    if (!name_.empty()) std::cout << "      the frame of " << name_ << " is destroyed\n";
  }

 private:
  std::string_view name_;  // empty once it was moved into the frame
};

// --8<-- [start:steps]
uring::task<int> child(traced) {
  std::cout << "  child runs\n";
  co_return 42;
}

uring::task<int> parent(traced) {
  std::cout << "parent runs, and calls child\n";
  uring::task<int> called = child(traced{"child"});
  std::cout << "parent has a task, and awaits it\n";
  const int answer = co_await std::move(called);
  std::cout << "parent has " << answer << '\n';
  co_return answer;
}
// --8<-- [end:steps]

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 06: one awaited call, step by step."};
  return common::program_main(argc, argv, flags, [] {
    const int answer = uring::sync_wait(parent(traced{"parent"}));
    std::cout << "main gets " << answer << '\n';
  });
}
