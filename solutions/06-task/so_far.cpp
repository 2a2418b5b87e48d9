// SPDX-License-Identifier: MIT
// 06-so_far: shows what your task can do so far. Stops at the first piece that is not written yet.
//
//   ./course run 06:so_far
#include <exception>
#include <iostream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "pausing.hpp"
#include "program_main.hpp"
#include "promise.hpp"
#include "sync_wait.hpp"
#include "task.hpp"

namespace {

using smallest::pausing;

uring::task<> greet() {
  std::cout << "      greet runs\n";
  co_return;
}

uring::task<int> answer() {
  co_return 42;
}

uring::task<int> fail() {
  throw std::runtime_error{"no answer"};
  co_return 0;
}

pausing use_tasks() {
  std::cout << "06.1  greet() is called\n";
  uring::task<> greeting = greet();
  std::cout << "      it has returned, and none of its lines has run\n";
  uring::task<> moved{std::move(greeting)};
  std::cout << "      its task has moved\n";
  std::cout << "06.2  the task is awaited\n";
  co_await std::move(moved);
  const int number = co_await answer();
  std::cout << "06.3  a value came across: " << number << '\n';
  try {
    (void)co_await fail();
  } catch (const std::runtime_error& error) {
    std::cout << "      and an exception: " << error.what() << '\n';
  }
}

pausing use_promise(uring::promise<int>& promised) {
  std::cout << "06.5  a coroutine waits for a promise\n";
  const int number = co_await promised;
  std::cout << "      it goes on inside resolve(), with " << number << '\n';
}

void show_all() {
  std::cout << std::unitbuf;  // print immediately, even if the next step ends the program
  const pausing tasks = use_tasks();
  tasks.frame.destroy();
  const int number = uring::sync_wait(answer());
  std::cout << "06.4  main() waited for " << number << '\n';
  std::vector<uring::task<int>> both;
  both.push_back(answer());
  both.push_back(answer());
  std::cout << "      and for " << uring::sync_wait_all(std::move(both)).size() << " tasks\n";
  uring::promise<int> promised;
  const pausing waiting = use_promise(promised);
  promised.resolve(42);
  std::cout << "      resolve() has returned\n";
  waiting.frame.destroy();
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 06: what your task can do so far."};
  return common::program_main(argc, argv, flags, show_all);
}
