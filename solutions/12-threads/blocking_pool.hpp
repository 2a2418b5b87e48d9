// SPDX-License-Identifier: MIT
// Runs blocking work on threads of its own. A context's coroutine moves to a thread of the pool,
// does the work there, and comes back to the context's thread with the result or the exception.
// Owns     the threads, and a ring whose messages bring coroutines back.
// Lifetime the context must outlive it. The destructor waits for work that is under way.
// Threads  invoke(): the one that runs the context. The work: one of the pool's.
// Errors   co_await throws what the work has thrown.
// Rule     neither work that has begun nor the wait for it can be canceled, because the work uses
//          the frame until it has ended. So bound how long the work may take.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "addressed.hpp"
#include "io_context.hpp"
#include "message_sender.hpp"
#include "outcome.hpp"
#include "task.hpp"
#include "thread_pool.hpp"
#include "todo.hpp"

namespace uring {

class blocking_pool {
 public:
  blocking_pool(io_context& home, std::size_t threads) : home_{home}, pool_{threads} {
    home_.set_receiver(&the_postman);
  }
  blocking_pool(blocking_pool&&) = delete;

  // const auto result = co_await pool.invoke(std::move(work)): calls work() on a thread of the
  // pool. The task begins and ends on the context's thread.
  template <typename Work>
  task<std::invoke_result_t<Work&>> invoke(Work work);

 private:
  // Moves a coroutine from a thread of the pool to the context's thread. The object lives in the
  // coroutine's frame.
  class [[nodiscard]] way_home final : message_receiver {
   public:
    explicit way_home(blocking_pool& from) noexcept : from_{from} {}

    bool await_ready() const noexcept { return false; }

    // On a thread of the pool. Takes references to from_.sender_ and from_.home_. Stores `awaiting`
    // in traveler_, with std::memory_order_release. Then sends a message to the context:
    // sender.send(home, *this, 0), where *this is only an address. The store must be the last
    // access to the frame, which holds this object and its from_, because the other thread may
    // destroy the frame. The kernel orders an access between the store and the send before the
    // other thread's accesses, but the rules of C++ do not cover this order, nor does TSan.
    void await_suspend(std::coroutine_handle<> awaiting) noexcept {
      // --8<-- [start:task-12-5b]
      message_sender& sender = from_.sender_;
      io_context& home = from_.home_;
      traveler_.store(awaiting, std::memory_order_release);
      sender.send(home, *this, 0);
      // --8<-- [end:task-12-5b]
    }
    void await_resume() const noexcept {}

   private:
    // On the context's thread. Loads traveler_ with std::memory_order_acquire, and resumes that
    // coroutine. The acquire pairs with the release in await_suspend(). The message orders the two
    // threads, too, but the rules of C++ do not cover what the kernel does.
    void on_message(const message&) override {
      // --8<-- [start:task-12-5c]
      traveler_.load(std::memory_order_acquire).resume();
      // --8<-- [end:task-12-5c]
    }

    blocking_pool& from_;
    std::atomic<std::coroutine_handle<>> traveler_;
  };

  // While it lives, the loop waits for a message. Made and destroyed on the context's thread.
  class [[nodiscard]] under_way {
   public:
    explicit under_way(io_queue& queue) noexcept : queue_{queue} { queue_.expect_message(); }
    under_way(under_way&&) = delete;
    ~under_way() { queue_.message_has_come(); }

   private:
    io_queue& queue_;
  };

  template <typename Work>
  static task<std::invoke_result_t<Work&>> call(Work work) {
    co_return work();
  }

  io_context& home_;
  message_sender sender_;
  thread_pool pool_;  // made last, and so destroyed first: its threads use the members above
};

template <typename Work>
task<std::invoke_result_t<Work&>> blocking_pool::invoke(Work work) {
  const under_way until_it_ends{home_};
  way_home home{*this};  // made on the context's thread, which reads it before the acquire load
  outcome<std::invoke_result_t<Work&>> result;
  // Goes to the pool with co_await pool_.schedule(). Awaits call(std::move(work)) there, and keeps
  // its outcome in `result`. Comes back with co_await home, even if the work has thrown. If you
  // await a task's as_outcome(), it returns the value or the exception, and does not throw.
  // --8<-- [start:task-12-5]
  co_await pool_.schedule();
  result = co_await call(std::move(work)).as_outcome();
  co_await home;
  // --8<-- [end:task-12-5]
  co_return result.take();
}

}  // namespace uring
