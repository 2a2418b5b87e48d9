// SPDX-License-Identifier: MIT
// Breaks one rule of a task or a promise, and should be stopped by an assert that names it. A
// program of its own: asserts are on in every build of it, and it dies.
#include <iostream>
#include <optional>
#include <string_view>
#include <utility>

#include "driver.hpp"
#include "promise.hpp"
#include "task.hpp"

namespace {

uring::task<int> answer() {
  co_return 42;
}

uring::task<int> pass(uring::promise<int>& awaited) {
  const int value = co_await awaited;
  co_return value;
}

void awaits_an_empty_task() {
  uring::task<int> first = answer();
  const uring::task<int> second = std::move(first);
  static_cast<void>(std::move(first).operator co_await());  // NOLINT(bugprone-use-after-move)
}

void awaits_twice() {
  uring::task<int> once = answer();
  const auto awaiter = std::move(once).operator co_await();
  static_cast<void>(awaiter.await_suspend(std::noop_coroutine()));
  static_cast<void>(std::move(once).operator co_await());  // NOLINT(bugprone-use-after-move)
}

void awaits_a_task_that_has_ended() {
  uring::task<int> once = answer();
  const auto awaiter = std::move(once).operator co_await();
  awaiter.await_suspend(std::noop_coroutine()).resume();
  static_cast<void>(std::move(once).operator co_await());  // NOLINT(bugprone-use-after-move)
}

void takes_too_early() {
  uring::outcome<int> nothing_yet;
  static_cast<void>(nothing_yet.take());
}

void destroys_a_promise_that_is_awaited() {
  uring::outcome<int> ended;
  std::optional<uring::promise<int>> awaited{std::in_place};
  const course_test::driver outermost = course_test::drive_into(pass(*awaited), ended);
  outermost.start();
  awaited.reset();
}

void awaits_a_promise_twice() {
  uring::promise<int> awaited;
  uring::outcome<int> ended[2];
  const course_test::driver first = course_test::drive_into(pass(awaited), ended[0]);
  const course_test::driver second = course_test::drive_into(pass(awaited), ended[1]);
  first.start();
  second.start();
}

void settles_a_promise_twice() {
  uring::promise<int> settled;
  settled.resolve(1);
  settled.resolve(2);
}

void rejects_with_nothing() {
  uring::promise<int> settled;
  settled.reject(nullptr);
}

struct misuse {
  std::string_view name;
  void (*commit)();
};

constexpr misuse misuses[] = {
    {"empty-task", awaits_an_empty_task},
    {"task-twice", awaits_twice},
    {"ended-task", awaits_a_task_that_has_ended},
    {"too-early", takes_too_early},
    {"promise-destroyed", destroys_a_promise_that_is_awaited},
    {"promise-twice", awaits_a_promise_twice},
    {"settled-twice", settles_a_promise_twice},
    {"rejected-with-nothing", rejects_with_nothing},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view wanted{argc == 2 ? argv[1] : ""};
  for (const misuse& each : misuses) {
    if (each.name != wanted) continue;
    each.commit();
    std::cout << "nothing stopped it\n";
    return 0;
  }
  std::cerr << "06-misuse takes the name of a misuse\n";
  return 2;
}
