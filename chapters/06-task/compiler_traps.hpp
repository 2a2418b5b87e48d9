// SPDX-License-Identifier: MIT
// Code that breaks the three rules of the house style that exist because of compiler bugs.
// Threads  main().
// Errors   none: report() prints how often objects were made and destroyed.
// Rule     write none of this; no_temporary() shows what to write instead.
#pragma once

#include <coroutine>
#include <exception>
#include <iostream>
#include <utility>

#include "sync_wait.hpp"
#include "task.hpp"

namespace traps {

using uring::task;

// Counts how often a `counted` was made and destroyed: a compiler bug shows as a difference.
struct counted {
  static inline int made = 0;
  static inline int destroyed = 0;

  explicit counted(int number) noexcept : value{number} { ++made; }
  counted(const counted& other) noexcept : value{other.value} { ++made; }
  ~counted() { ++destroyed; }

  int value;
};

inline void report() {
  std::cout << "made " << counted::made << ", destroyed " << counted::destroyed
            << (counted::made == counted::destroyed ? ": as it should be" : ": a compiler bug")
            << '\n';
}

struct request {
  counted body;
  int number;
};

inline task<int> answer(request asked) {
  co_return asked.body.value + asked.number;
}

inline task<int> ask() {
  co_return co_await answer({counted{1}, 2});  // a temporary request
}

inline void temporary() {
  (void)uring::sync_wait(ask());
  report();
}

inline task<int> ask_by_name() {
  request asked{counted{1}, 2};
  const int number = co_await answer(std::move(asked));
  co_return number;
}

inline void no_temporary() {
  (void)uring::sync_wait(ask_by_name());
  report();
}

inline task<std::pair<counted, int>> pair() {
  co_return std::pair{counted{1}, 2};
}

inline task<int> bind_often() {
  int sum = 0;
  for (int i = 0; i < 3; ++i) {
    auto [first, second] = co_await pair();
    sum += first.value + second;
  }
  co_return sum;
}

inline void binding() {
  (void)uring::sync_wait(bind_often());
  report();
}

struct self_destruction {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> own) const noexcept { own.destroy(); }
  void await_resume() const noexcept {}
};

struct unowned {
  struct promise_type {
    unowned get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

inline unowned destroy_itself(counted parameter) {
  const counted local{parameter.value};
  co_await self_destruction{};
}

inline void self_destroying() {
  destroy_itself(counted{1});
  report();
}

}  // namespace traps
