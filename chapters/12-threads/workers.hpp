// SPDX-License-Identifier: MIT
// Several workers that begin together and stop together.
// Owns     the workers and, while run() goes on, their threads.
// Lifetime the stop signal must outlive it.
// Threads  run(): the one that made it. `serve` is called by each worker's own thread.
// Errors   the first error of any worker ends all of them, and run() throws it. If the system has
//          no thread left, this is such an error, too, and no worker serves.
// Rule     no worker serves before every ring is enabled, and no ring is destroyed before every
//          thread has ended: so any worker may send to any other.
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
  // Runs a worker from its first turn to its last, and returns when a stop was asked for.
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
      const common::stop_signals_blocked inherited;  // so the calling thread takes the signals
      start_all(threads, serve_and_finish);
    }
    threads.clear();  // joins them
    if (first_error_ != nullptr) std::rethrow_exception(std::exchange(first_error_, nullptr));
  }

 private:
  // Starts a thread for each of all_, which calls run_one(its worker, its index, serve). If the
  // system has no thread left, std::jthread's constructor throws. Then call failed(), and call
  // start_.give_up() once for this worker and each one after it, because the others wait for them.
  // Do not throw: run() throws the first error, and that may be another one.
  void start_all(std::vector<std::jthread>& threads, const serve_function& serve) {
    std::size_t index = 0;
    COURSE_TODO("12.2");
  }

  // Runs a worker's thread. Enables the ring, waits for all others by start_.arrive_and_wait(), and
  // serves if that returns true; false means that one of them could not start, and then no worker
  // serves. Every exception goes to failed(), because none may leave a thread. A worker whose own
  // ring cannot be enabled calls start_.give_up().
  void run_one(worker& own, std::size_t index, const serve_function& serve) noexcept {
    COURSE_TODO("12.2");
  }

  // Any thread may call this, even several at once. Keeps only the first error in first_error_,
  // which mutex_ guards, and asks all workers to stop, by stop_.request().
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
