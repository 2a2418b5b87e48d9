// SPDX-License-Identifier: MIT
// 06-traps: one small failing example for each rule of the house style. It brings AddressSanitizer.
//
//   ./course run 06:traps -- capturing-lambda
#include <coroutine>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "sync_wait.hpp"
#include "task.hpp"

namespace {

// Says how often it was made and destroyed: what a compiler gets wrong shows as a difference.
struct counted {
  static inline int made = 0;
  static inline int destroyed = 0;

  explicit counted(int number) noexcept : value{number} { ++made; }
  counted(const counted& other) noexcept : value{other.value} { ++made; }
  ~counted() { ++destroyed; }

  int value;
};

void report() {
  std::cout << "made " << counted::made << ", destroyed " << counted::destroyed << '\n';
}

// --8<-- [start:capturing-lambda]
uring::task<int> from_lambda() {
  const std::vector<int> numbers{20, 1, 21};
  const std::function sum{[numbers]() -> uring::task<int> {  // too large to be kept in place
    co_return std::accumulate(numbers.begin(), numbers.end(), 0);
  }};
  return sum();
}  // `sum` ends here, and `numbers` in it; the frame has a pointer to them
// --8<-- [end:capturing-lambda]

void capturing_lambda() {
  const int sum = uring::sync_wait(from_lambda());
  std::cout << "the sum is " << sum << '\n';
}

// --8<-- [start:reference-parameter]
uring::task<int> twice(const int& number) {
  co_return 2 * number;
}

uring::task<int> from_local() {
  const auto number = std::make_unique<int>(21);
  return twice(*number);
}  // the number ends here; the frame has a reference to it
// --8<-- [end:reference-parameter]

void reference_parameter() {
  const int number = uring::sync_wait(from_local());
  std::cout << "twice the number is " << number << '\n';
}

// --8<-- [start:temporary]
struct request {
  counted body;
  int number;
};

uring::task<int> answer(request asked) {
  co_return asked.body.value + asked.number;
}

uring::task<int> ask() {
  co_return co_await answer({counted{1}, 2});
}  // a temporary request
// --8<-- [end:temporary]

void temporary() {
  (void)uring::sync_wait(ask());
  report();
}

uring::task<int> ask_by_name() {
  request asked{counted{1}, 2};
  const int number = co_await answer(std::move(asked));
  co_return number;
}

void no_temporary() {
  (void)uring::sync_wait(ask_by_name());
  report();
}

// --8<-- [start:binding]
uring::task<std::pair<counted, int>> pair() {
  co_return std::pair{counted{1}, 2};
}

uring::task<int> bind_often() {
  int sum = 0;
  for (int i = 0; i < 3; ++i) {
    auto [first, second] = co_await pair();
    sum += first.value + second;
  }
  co_return sum;
}
// --8<-- [end:binding]

void binding() {
  (void)uring::sync_wait(bind_often());
  report();
}

// --8<-- [start:self-destruction]
struct self_destruction {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> own) const noexcept { own.destroy(); }
  void await_resume() const noexcept {}
};
// --8<-- [end:self-destruction]

struct unowned {
  struct promise_type {
    unowned get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

unowned destroy_itself(counted parameter) {
  const counted local{parameter.value};
  co_await self_destruction{};
}

void self_destroying() {
  destroy_itself(counted{1});
  report();
}

struct trap {
  std::string_view name;
  void (*spring)();
};

constexpr trap traps[] = {
    {"capturing-lambda", capturing_lambda},
    {"reference-parameter", reference_parameter},
    {"temporary", temporary},
    {"no-temporary", no_temporary},
    {"binding", binding},
    {"self-destruction", self_destroying},
};

}  // namespace

// Flags by hand: this program is built with flags of its own, and links nothing of the course.
int main(int argc, char** argv) {
  const std::string_view wanted{argc == 2 ? argv[1] : ""};
  for (const trap& each : traps) {
    if (each.name != wanted) continue;
    each.spring();
    return 0;
  }
  std::cerr << "06-traps takes one of:";
  for (const trap& each : traps) std::cerr << ' ' << each.name;
  std::cerr << '\n';
  return 2;
}
