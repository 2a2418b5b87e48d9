// SPDX-License-Identifier: MIT
// A multishot request as a stream, from the pieces of chapters 07 and 08 alone: an io_operation
// that hears every completion, a source of its own that ends it, and an end that is awaited.
// Owns     the completions that nobody has taken yet.
// Lifetime end() must have been awaited before it goes: co_await finally(consume(stream),
//          stream.end()).
// Threads  the one that runs the queue.
// Errors   a completion's res; the stream goes on as long as the request does (IORING_CQE_F_MORE).
// Rule     one coroutine at a time waits for it.
#pragma once

#include <liburing.h>

#include <coroutine>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "cancel_source.hpp"
#include "io_operation.hpp"
#include "io_queue.hpp"
#include "ring.hpp"
#include "task.hpp"

namespace course_test {

template <typename Prepare>
class multishot_stream {
 public:
  multishot_stream(uring::child_of above, Prepare prepare)
      : own_{above}, prepare_{std::move(prepare)} {}
  multishot_stream(multishot_stream&&) = delete;  // the kernel holds the address of a part

  // co_await stream.next(): the next completion; nothing when the request has ended.
  [[nodiscard]] auto next() {
    if (!was_started_) start();
    return next_completion{*this};
  }

  // Ends the request, waits for its final completion, and drops what nobody has taken.
  uring::task<> end() {
    own_.cancel();
    co_await until_ended{*this};
    dropped_ += arrived_.size();
    arrived_.clear();
  }

  [[nodiscard]] bool is_in_flight() const noexcept { return is_in_flight_; }
  [[nodiscard]] std::size_t dropped() const noexcept { return dropped_; }

 private:
  struct next_completion {
    bool await_ready() const noexcept { return !stream.arrived_.empty() || !stream.is_in_flight_; }
    void await_suspend(std::coroutine_handle<> awaiting) noexcept {
      stream.continuation_ = awaiting;
    }
    std::optional<uring::completion> await_resume() {
      if (stream.arrived_.empty()) return std::nullopt;
      const uring::completion first = stream.arrived_.front();
      stream.arrived_.pop_front();
      return first;
    }
    multishot_stream& stream;
  };

  struct until_ended {
    bool await_ready() const noexcept { return !stream.is_in_flight_; }
    void await_suspend(std::coroutine_handle<> awaiting) noexcept { stream.at_end_ = awaiting; }
    void await_resume() const noexcept {}
    multishot_stream& stream;
  };

  struct request final : uring::io_operation {
    explicit request(multishot_stream& of) noexcept
        : io_operation{[](io_operation& self, const uring::completion& done) {
            static_cast<request&>(self).stream.on_completion(done);
          }},
          stream{of} {}
    multishot_stream& stream;
  };

  void start() {
    was_started_ = true;
    const uring::io_handle io = own_;
    is_in_flight_ = io.start(request_, prepare_);
  }

  void on_completion(const uring::completion& done) {
    is_in_flight_ = (done.flags & IORING_CQE_F_MORE) != 0;
    arrived_.push_back(done);
    std::coroutine_handle<>& waiting = continuation_ ? continuation_ : at_end_;
    const bool has_news = continuation_ || !is_in_flight_;
    if (waiting && has_news) std::exchange(waiting, nullptr).resume();
  }

  uring::cancel_source own_;
  Prepare prepare_;
  request request_{*this};
  bool was_started_ = false;
  bool is_in_flight_ = false;
  std::deque<uring::completion> arrived_;
  std::coroutine_handle<> continuation_;  // of next()
  std::coroutine_handle<> at_end_;        // of end()
  std::size_t dropped_ = 0;
};

}  // namespace course_test
