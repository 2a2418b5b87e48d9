// SPDX-License-Identifier: MIT
// Runs blocking work on threads of its own. A context's coroutine moves to a thread of the pool,
// does the work there, and comes back to the context's thread with the result or the exception.
// Owns     the threads, and the ring by which a coroutine comes back.
// Lifetime the context must outlive it. The destructor waits for work that is under way.
// Threads  invoke(): the one that runs the context. The work: one of the pool's.
// Errors   co_await throws what the work has thrown.
// Rule     neither work that has begun nor the wait for it can be canceled: the frame lives until
//          the work has ended. So bound how long the work may take.
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
  // Takes a coroutine from a thread of the pool to the context's. It lives in its frame.
  class [[nodiscard]] way_home final : message_receiver {
   public:
    explicit way_home(blocking_pool& from) noexcept : from_{from} {}

    bool await_ready() const noexcept { return false; }

    // On the pool's thread. Stores `awaiting` in traveler_, with release order, and then sends a
    // message to the context: sender.send(home, *this, 0), where *this is only an address. The
    // store must be the last access to the frame, in which this object and from_ live: C++ and TSan
    // know no order of a later access, even one before the send, and the other thread's accesses,
    // although the kernel makes one. So take references to from_.sender_ and from_.home_ first.
    void await_suspend(std::coroutine_handle<> awaiting) noexcept {
      COURSE_TODO("12.5");
    }
    void await_resume() const noexcept {}

   private:
    // On the context's thread. Loads traveler_ with acquire order, and resumes that coroutine. The
    // acquire pairs with the release in await_suspend(): the kernel orders the two by the message,
    // but the rules of C++ do not cover that.
    void on_message(const message&) override {
      COURSE_TODO("12.5");
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
  way_home home{*this};  // made before the thread changes: the context's thread will read it
  outcome<std::invoke_result_t<Work&>> result;
  // Goes to the pool, awaits call(std::move(work)) there, keeps its outcome in `result`, and comes
  // back by co_await home, even if call() throws. A task's as_outcome() returns the exception and
  // does not throw.
  COURSE_TODO("12.5");
  co_return result.take();
}

}  // namespace uring
