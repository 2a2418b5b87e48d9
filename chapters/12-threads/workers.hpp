// SPDX-License-Identifier: MIT
// Several workers that begin together and stop together.
// Owns     the workers and, while run() goes on, their threads.
// Lifetime the stop signal must outlive it.
// Threads  run(): the thread that made the object. Each worker's own thread calls `serve`.
// Errors   the first error of any worker ends all of them, and run() throws it. If the system has
//          no thread left, this is such an error, too, and no worker serves.
// Rule     no worker serves before every ring is enabled, and no ring is destroyed before every
//          thread has ended. Therefore any worker may send to any other.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <iterator>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "io_context.hpp"
#include "ring_options.hpp"
#include "ring_worker.hpp"
#include "starting_line.hpp"
#include "stop_signal.hpp"
#include "todo.hpp"

namespace uring {

class workers {
 public:
  // Runs a worker from its first turn to its last, and returns after a stop was requested.
  using serve_function = std::function<void(worker& own, std::size_t index)>;

  workers(std::size_t count, const ring_options& options, const common::stop_signal& stop)
      : stop_{stop}, start_{count} {
    for (std::size_t i = 0; i < count; ++i) all_.emplace_back(options);
  }
  workers(workers&&) = delete;  // its threads know its address

  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  // Any thread may send messages to it. All other use is for the worker's own thread.
  [[nodiscard]] io_context& context_of(std::size_t index) {
    return std::next(all_.begin(), static_cast<std::ptrdiff_t>(index))->context();
  }

  // Returns when every worker has ended.
  void run(const serve_function& serve) {
    const serve_function serve_and_finish = [&serve](worker& own, std::size_t index) {
      serve(own, index);
      own.finish();
    };
    std::vector<std::jthread> threads;
    {
      const common::stop_signals_blocked inherited;  // the new threads get no stop signal
      start_all(threads, serve_and_finish);
    }
    threads.clear();  // joins them
    if (first_error_ != nullptr) std::rethrow_exception(std::exchange(first_error_, nullptr));
  }

 private:
  // Starts a thread in `threads` for each worker of all_. The thread calls run_one(the worker, its
  // index, serve). If the system has no thread left, std::jthread's constructor throws. Then pass
  // std::current_exception() to failed(). Also call start_.give_up() once for this worker and once
  // for each worker after it, because the threads that were started wait for all workers. Do not
  // throw, because run() throws the first error, which may be another one.
  void start_all(std::vector<std::jthread>& threads, const serve_function& serve) {
    std::size_t index = 0;
    COURSE_TODO("12.2");
  }

  // Each worker's thread runs this. First call own.enable(). If that throws, this worker cannot
  // start, and calls start_.give_up(). Otherwise call start_.arrive_and_wait(), which waits until
  // each other worker is ready or has given up. If it returns true, call serve(own, index). If it
  // returns false, another worker could not start, and then no worker serves. Pass every exception
  // to failed(), because none may leave a thread.
  void run_one(worker& own, std::size_t index, const serve_function& serve) noexcept {
    COURSE_TODO("12.2");
  }

  // Any thread may call this, even several at once. Keeps only the first error in first_error_,
  // which mutex_ guards. Asks all workers to stop, with stop_.request().
  void failed(std::exception_ptr error) noexcept {
    COURSE_TODO("12.2");
  }

  const common::stop_signal& stop_;
  std::list<worker> all_;
  starting_line start_;
  std::mutex mutex_;
  std::exception_ptr first_error_;
};

}  // namespace uring
