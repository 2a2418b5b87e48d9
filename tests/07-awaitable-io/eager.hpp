// SPDX-License-Identifier: MIT
// The simplest coroutine: it runs when it is called, and its frame goes when it ends. For tests of
// what a task is made of, before there is anything that runs tasks.
// Owns     nothing; the frame owns itself.
// Lifetime its reference parameters must live until it has ended.
// Errors   an exception goes to the code that called or resumed it.
#pragma once

#include <coroutine>

namespace course_test {

struct eager {
  struct promise_type {
    eager get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const { throw; }
  };
};

}  // namespace course_test
