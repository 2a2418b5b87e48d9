// SPDX-License-Identifier: MIT
// 06-calls: measures the cost of calling a function, a virtual function and a coroutine.
//
//   ./course run 06:calls -- --how coroutine --count 10000000
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "program_main.hpp"
#include "sync_wait.hpp"
#include "task.hpp"

namespace {

constexpr std::int64_t count_max = 1'000'000'000'000;

[[gnu::noinline]] std::int64_t next(std::int64_t number) {
  return number + 1;
}

struct counter {
  virtual ~counter() = default;
  virtual std::int64_t next(std::int64_t number) const = 0;
};

[[gnu::noinline]] uring::task<std::int64_t> next_later(std::int64_t number) {
  co_return number + 1;
}

struct by_one : counter {
  std::int64_t next(std::int64_t number) const override { return number + 1; }
};
struct by_two : counter {
  std::int64_t next(std::int64_t number) const override { return number + 2; }
};

// There are two counters, and the choice is made at run time, so the call stays virtual.
std::unique_ptr<counter> make_counter(std::int64_t step) {
  if (step == 1) return std::make_unique<by_one>();
  return std::make_unique<by_two>();
}

std::int64_t count_by_function(std::int64_t count) {
  std::int64_t number = 0;
  while (number < count) {
    number = next(number);
    asm volatile("" : "+r"(number));  // so that the compiler cannot leave out the call
  }
  return number;
}

std::int64_t count_by_virtual(std::int64_t count) {
  std::int64_t step = 1;
  asm volatile("" : "+r"(step));  // hides the value from the compiler
  const std::unique_ptr<counter> hidden = make_counter(step);
  std::int64_t number = 0;
  while (number < count) number = hidden->next(number);
  return number;
}

uring::task<std::int64_t> count_by_coroutine(std::int64_t count) {
  std::int64_t number = 0;
  while (number < count) number = co_await next_later(number);
  co_return number;
}

std::int64_t count_up(const std::string& how, std::int64_t count) {
  if (how == "function") return count_by_function(count);
  if (how == "virtual") return count_by_virtual(count);
  return uring::sync_wait(count_by_coroutine(count));
}

}  // namespace

int main(int argc, char** argv) {
  std::string how = "coroutine";
  std::int64_t count = 10'000'000;
  common::flag_set flags{"Chapter 06: what a call takes, called and awaited."};
  flags.add("--how", how, {"function", "virtual", "coroutine"}, "What is called");
  flags.add("--count", count, 1, count_max, "How often");
  return common::program_main(argc, argv, flags, [&] {
    const auto start = std::chrono::steady_clock::now();
    const std::int64_t reached = count_up(how, count);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    std::cout << "calls: " << reached << '\n'
              << "ns per call: " << took.count() / static_cast<double>(reached) << '\n';
  });
}
