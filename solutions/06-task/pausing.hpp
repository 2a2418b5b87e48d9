// SPDX-License-Identifier: MIT
// The smallest type that a coroutine can return: it keeps the coroutine's handle, and no more.
// Owns     nothing: the code that called the coroutine destroys the frame, with frame.destroy().
// Lifetime the frame stays after the coroutine's end, until it is destroyed.
// Threads  one at a time.
// Errors   an exception that leaves the body ends the program.
#pragma once

#include <coroutine>
#include <exception>

namespace smallest {

// --8<-- [start:pausing]
struct pausing {
  struct promise_type {
    pausing get_return_object() noexcept {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_never initial_suspend() const noexcept { return {}; }  // go on into the body
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
    std::suspend_always final_suspend() const noexcept { return {}; }  // stop at the end
  };

  std::coroutine_handle<promise_type> frame;
};
// --8<-- [end:pausing]

}  // namespace smallest
