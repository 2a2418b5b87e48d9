// SPDX-License-Identifier: MIT
// A pool of threads, each of which runs any coroutine that is scheduled here.
// Owns     the threads.
// Lifetime the destructor joins the threads. Before they end, they run all coroutines that are
//          scheduled, even those that are scheduled meanwhile.
// Threads  schedule(): any.
// Errors   the constructor throws std::system_error if the system has no thread left.
// Rule     a scheduled coroutine stays on its thread until it awaits something that resumes it on
//          another one. The queue needs no bound and no memory of its own, because its places are
//          in the frames that wait. The code that makes the frames bounds their number.
#pragma once

#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "list_link.hpp"
#include "todo.hpp"

namespace uring {

class thread_pool {
 public:
  class scheduled;

  explicit thread_pool(std::size_t threads) {
    threads_.reserve(threads);
    while (threads_.size() < threads) {
      threads_.emplace_back([this](const std::stop_token& ending) { work(ending); });
    }
  }
  thread_pool(thread_pool&&) = delete;  // its threads know its address

  [[nodiscard]] std::size_t size() const noexcept { return threads_.size(); }

  // co_await pool.schedule(): suspends the coroutine, and one of our threads goes on with it.
  [[nodiscard("it is scheduled when it is awaited")]] scheduled schedule() noexcept;

 private:
  // Puts `place` at the end of waiting_, which mutex_ guards, and wakes one thread with
  // has_work_.notify_one(). As soon as the mutex is free, another thread may run the coroutine to
  // its end. This may destroy the frame with `place`, and even the pool.
  void enqueue(scheduled& place);

  // Each thread runs this. Again and again, it takes the first place out of waiting_ (pop_front()),
  // and resumes that place's coroutine. Other threads must be able to do the same meanwhile.
  // has_work_.wait(lock, ending, predicate) needs a std::unique_lock that holds mutex_, and frees
  // the mutex only while it waits. It returns when the predicate is true or the pool is ending. Its
  // result is the predicate's: true if work is left, and false if this thread should end.
  void work(const std::stop_token& ending);

  std::mutex mutex_;
  std::condition_variable_any has_work_;
  linked_list<scheduled> waiting_;
  std::vector<std::jthread> threads_;  // made last, and so destroyed first
};

// A place in the queue. It lives in the frame that waits.
class [[nodiscard]] thread_pool::scheduled : public list_link {
 public:
  explicit scheduled(thread_pool& pool) noexcept : pool_{pool} {}

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) {
    awaiting_ = awaiting;
    pool_.enqueue(*this);
  }
  void await_resume() const noexcept {}

 private:
  friend class thread_pool;

  thread_pool& pool_;
  std::coroutine_handle<> awaiting_;
};

inline thread_pool::scheduled thread_pool::schedule() noexcept {
  return scheduled{*this};
}

inline void thread_pool::enqueue(scheduled& place) {
  COURSE_TODO("12.4");
}

inline void thread_pool::work(const std::stop_token& ending) {
  COURSE_TODO("12.4");
}

}  // namespace uring
