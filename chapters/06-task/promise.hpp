// SPDX-License-Identifier: MIT
// A result that comes from outside every coroutine: a callback, another thread, a signal's handler
// loop. One coroutine awaits it; whoever has the result resolves or rejects it.
// Owns     the result until it was taken.
// Lifetime until it was settled and, if somebody awaits it, until the await has ended; both know
//          its address.
// Threads  settle on one thread, await on the same or on another. The coroutine goes on in the
//          thread that settles, inside resolve() or reject(), if it waited by then.
// Errors   the exception given to reject() is thrown by co_await.
// Rule     settled exactly once, awaited at most once.
// See      std::atomic::exchange; cppreference, "memory_order"
#pragma once

#include <atomic>
#include <cassert>
#include <coroutine>
#include <exception>
#include <utility>

#include "outcome.hpp"
#include "todo.hpp"

namespace uring {

template <typename T = void>
class promise {
 public:
  promise() noexcept = default;
  promise(promise&&) = delete;  // whoever settles it has its address
  ~promise() { assert(!somebody_waits() && "a coroutine still waits for this promise"); }

  template <typename... Value>
  void resolve(Value&&... value) {
    assert(!await_ready() && "this promise was settled before");
    outcome_.set_value(std::forward<Value>(value)...);
    settle();
  }

  void reject(std::exception_ptr error) {
    assert(error != nullptr && "to reject takes an exception");
    assert(!await_ready() && "this promise was settled before");
    outcome_.set_exception(std::move(error));
    settle();
  }

  bool await_ready() const noexcept {
    return state_.load(std::memory_order_acquire) == settled();  // pairs with settle()
  }

  // Leaves `awaiting` for settle() and returns true: suspended. Or, if settle() was faster, returns
  // false: the coroutine goes on at once.
  bool await_suspend(std::coroutine_handle<> awaiting) noexcept {
    assert(!somebody_waits() && "two coroutines await one promise");
    COURSE_TODO("06.5");
  }

  T await_resume() { return outcome_.take(); }

 private:
  // Makes the result visible, and resumes who waits for it, if anybody does yet. Nothing of *this
  // may be touched after the exchange: the awaiting side may have ended and destroyed it.
  void settle() {
    COURSE_TODO("06.5");
  }

  // state_ is one of: nobody, the address of the frame that waits, settled().
  static constexpr void* nobody = nullptr;
  void* settled() const noexcept { return const_cast<promise*>(this); }  // no frame has our address

  [[nodiscard]] bool somebody_waits() const noexcept {
    void* const state = state_.load(std::memory_order_relaxed);
    return state != nobody && state != settled();
  }

  std::atomic<void*> state_ = nobody;
  outcome<T> outcome_;
};

}  // namespace uring
