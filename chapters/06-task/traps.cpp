// SPDX-License-Identifier: MIT
// 06-traps: a small failing example for each rule of the house style, built with AddressSanitizer.
//
//   ./course run 06:traps -- capturing-lambda
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <string_view>
#include <vector>

#include "compiler_traps.hpp"
#include "sync_wait.hpp"
#include "task.hpp"

namespace {

uring::task<int> from_lambda() {
  const std::vector<int> numbers{20, 1, 21};
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-capturing-lambda-coroutines)
  const std::function sum{[numbers]() -> uring::task<int> {
    co_return std::accumulate(numbers.begin(), numbers.end(), 0);
  }};
  return sum();
}  // `sum` is destroyed here, and `numbers` with it; the frame still points to them

void capturing_lambda() {
  const int sum = uring::sync_wait(from_lambda());
  std::cout << "the sum is " << sum << '\n';
}

uring::task<int> twice(const int& number) {
  co_return 2 * number;
}

uring::task<int> from_local() {
  const auto number = std::make_unique<int>(21);
  return twice(*number);
}  // the number is destroyed here; the frame still has a reference to it

void reference_parameter() {
  const int number = uring::sync_wait(from_local());
  std::cout << "twice the number is " << number << '\n';
}

struct trap {
  std::string_view name;
  void (*spring)();
};

constexpr trap all_traps[] = {
    {"capturing-lambda", capturing_lambda},
    {"reference-parameter", reference_parameter},
    {"temporary", traps::temporary},
    {"no-temporary", traps::no_temporary},
    {"binding", traps::binding},
    {"self-destruction", traps::self_destroying},
};

}  // namespace

// Parses its flags by hand, because it has its own compiler flags and links nothing of the course.
int main(int argc, char** argv) {
  const std::string_view wanted{argc == 2 ? argv[1] : ""};
  for (const trap& each : all_traps) {
    if (each.name != wanted) continue;
    each.spring();
    return 0;
  }
  std::cerr << "06-traps takes one of:";
  for (const trap& each : all_traps) std::cerr << ' ' << each.name;
  std::cerr << '\n';
  return 2;
}
