// SPDX-License-Identifier: MIT
// A result that comes from outside every coroutine: from a callback or from another thread. One
// coroutine awaits it; the other side settles it, with resolve() or reject().
// Owns     the result until it is taken.
// Lifetime it must live until it is settled and the await has ended, because both sides use its
//          address. A frame that waits may be destroyed, because its awaiter then withdraws. But
//          the frame must not be destroyed while another thread settles the promise.
// Threads  settle on one thread, await on the same or on another. A coroutine that already waits is
//          resumed by the thread that settles, inside resolve() or reject().
// Errors   co_await throws the exception that reject() was given.
// Rule     settled exactly once, awaited at most once.
// See      std::atomic::exchange; cppreference, "memory_order"
#pragma once

#include <atomic>
#include <cassert>
#include <coroutine>
#include <exception>
#include <utility>

#include "outcome.hpp"
#include "running_coroutines.hpp"
#include "todo.hpp"

namespace uring {

// Word is the type of the state that both sides change. The tests pass another type.
template <typename T = void, typename Word = std::atomic<void*>>
class promise {
 public:
  class awaiter;

  promise() noexcept = default;
  promise(promise&&) = delete;  // the side that settles it has its address
  ~promise() { assert(!somebody_waits() && "a coroutine still waits for this promise"); }

  awaiter operator co_await() noexcept { return awaiter{*this}; }

  template <typename... Value>
  void resolve(Value&&... value) {
    assert(!is_settled() && "this promise was settled before");
    outcome_.set_value(std::forward<Value>(value)...);
    settle();
  }

  void reject(std::exception_ptr error) {
    assert(error != nullptr && "to reject takes an exception");
    assert(!is_settled() && "this promise was settled before");
    outcome_.set_exception(std::move(error));
    settle();
  }

  [[nodiscard]] bool is_settled() const noexcept {
    return state_.load(std::memory_order_acquire) == settled();  // pairs with settle()
  }

 private:
  // Publishes the result: changes state_ to settled(), in one step. If state_ was the address of a
  // frame before, resumes that coroutine. After that, touches no member, because the coroutine may
  // have destroyed *this.
  void settle() {
    const running_coroutines here;  // a coroutine that continues here may not block this thread
    // --8<-- [start:task-06-5b]
    void* const found = state_.exchange(settled(), std::memory_order_acq_rel);
    if (found != nobody) std::coroutine_handle<>::from_address(found).resume();
    // --8<-- [end:task-06-5b]
  }

  // state_ is one of: nobody, the address of the frame that waits (as coroutine_handle::address()
  // gives it and from_address() takes it), settled().
  static constexpr void* nobody = nullptr;
  void* settled() const noexcept { return const_cast<promise*>(this); }  // no frame has our address

  [[nodiscard]] bool somebody_waits() const noexcept {
    void* const state = state_.load(std::memory_order_relaxed);
    return state != nobody && state != settled();
  }

  Word state_ = nobody;
  outcome<T> outcome_;
};

// One await. It lives in the awaiting frame, and is destroyed with it, even while the frame waits.
template <typename T, typename Word>
class promise<T, Word>::awaiter {
 public:
  explicit awaiter(promise& awaited) noexcept : promise_{awaited} {}
  awaiter(awaiter&&) = delete;  // a copy's destructor would withdraw, too
  // If the frame is destroyed while it waits, settle() must find `nobody`.
  ~awaiter() {
    if (waiting_ == nullptr) return;
    promise_.state_.compare_exchange_strong(waiting_, nobody, std::memory_order_relaxed);
  }

  bool await_ready() const noexcept { return promise_.is_settled(); }

  // If state_ is `nobody`, stores the address of `awaiting`, and returns true: the coroutine stays
  // suspended. If settle() was faster, leaves state_ as it is and returns false: the coroutine
  // goes on. compare_exchange_strong takes two orders. If it succeeds, settle() will read
  // the frame that was written before (release). If it fails, this side reads the result (acquire).
  // If you pass release alone, the order of a failure is relaxed.
  bool await_suspend(std::coroutine_handle<> awaiting) noexcept {
    assert(!promise_.somebody_waits() && "two coroutines await one promise");
    waiting_ = awaiting.address();  // first: after the exchange the frame may run, and end
    // --8<-- [start:task-06-5]
    void* found = nobody;
    return promise_.state_.compare_exchange_strong(
        found, awaiting.address(),
        std::memory_order_release,   // pairs with settle(), which resumes a suspended frame
        std::memory_order_acquire);  // pairs with settle(), which has stored the result
    // --8<-- [end:task-06-5]
  }

  T await_resume() {
    waiting_ = nullptr;
    return promise_.outcome_.take();
  }

 private:
  promise& promise_;
  void* waiting_ = nullptr;  // the address of the frame, from its suspension to its resumption
};

}  // namespace uring
