// SPDX-License-Identifier: MIT
// Lets the test play the kernel: it takes one started request at a time, and answers them in any
// order. For programs that link test-scripted-ring.
// Owns     requests that were taken out of the queue and that the test has not asked for yet.
// Lifetime the io_queue outlives it; one at a time.
// Threads  the test's own.
// Errors   taking a request that nobody has started fails the test case.
// Rule     each answer is one turn of the io_queue; nothing reaches the kernel.
#pragma once

#include <liburing.h>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "io_queue.hpp"
#include "scripted_ring.hpp"

namespace course_test {

class manual_ring {
 public:
  explicit manual_ring(uring::io_queue& queue) : queue_{queue} {}
  manual_ring(manual_ring&&) = delete;

  // After a failed test case operations may still be open. The kernel does not know them, and the
  // frames behind them may be broken: the queue is to wait for none, and to resume none.
  ~manual_ring() { (void)queue_.close(); }

  [[nodiscard]] std::size_t waiting() {
    keep(take_prepared(queue_.handle()));
    return taken_.size();
  }

  // The next request, in the order in which they were started.
  [[nodiscard]] ::io_uring_sqe take() {
    INFO("the code under test has asked for nothing more: it has ended, or waits for something");
    REQUIRE(waiting() > 0);
    const ::io_uring_sqe next = taken_.front();
    taken_.pop_front();
    return next;
  }

  void answer(const ::io_uring_sqe& request, std::int32_t res, std::uint32_t flags = 0) {
    turn({{request.user_data, res, flags}});
  }

  // Answers a recv or a read with these bytes.
  void answer(const ::io_uring_sqe& request, std::string_view bytes) {
    REQUIRE(bytes.size() <= request.len);
    std::memcpy(reinterpret_cast<void*>(request.addr), bytes.data(), bytes.size());
    answer(request, static_cast<std::int32_t>(bytes.size()));
  }

  // Makes a message of another ring arrive.
  void bring(const uring::message& message) {
    turn({{message.word | uring::message_bit, message.value}});
  }

  // What the test may ask of a wait, see scripted_ring.hpp.
  [[nodiscard]] scripted_ring& ring() noexcept { return ring_; }

  // Makes all of these complete in one turn.
  void turn(std::vector<scripted_answer> answers) {
    answers_ = std::move(answers);
    queue_.turn();
  }

 private:
  void keep(const std::vector<::io_uring_sqe>& started) {
    taken_.insert(taken_.end(), started.begin(), started.end());
  }

  uring::io_queue& queue_;
  std::deque<::io_uring_sqe> taken_;
  std::vector<scripted_answer> answers_;
  scripted_ring ring_{[this](const std::vector<::io_uring_sqe>& submitted) {
    keep(submitted);
    return std::exchange(answers_, {});
  }};
};

// What a send or a write would have sent.
[[nodiscard]] inline std::string_view bytes_of(const ::io_uring_sqe& request) {
  return {reinterpret_cast<const char*>(request.addr), request.len};
}

}  // namespace course_test
