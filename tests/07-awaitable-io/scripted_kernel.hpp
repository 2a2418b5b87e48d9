// SPDX-License-Identifier: MIT
// The test as the kernel: it takes what a context has prepared, before anything is submitted, and
// answers in whatever order it likes.
// Owns     what was prepared and not taken yet.
// Lifetime the context outlives it, and never turns while it is used: nothing reaches the kernel.
// Threads  the test's own.
// Errors   taking a request that nobody has prepared fails the test case.
#pragma once

#include <liburing.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string_view>

#include "io_context.hpp"

namespace course_test {

class scripted_kernel {
 public:
  explicit scripted_kernel(uring::io_context& context) noexcept : context_{context} {}
  scripted_kernel(scripted_kernel&&) = delete;

  // After a failed test case operations may still be open: the context must not wait for them.
  ~scripted_kernel() {
    drain();
    uring::io_operation nobody{[](uring::io_operation&, const uring::completion&) {}};
    const auto user_data = reinterpret_cast<std::uint64_t>(&nobody);
    while (context_.in_flight() > 0) context_.deliver({user_data, -ECANCELED, 0});
  }

  [[nodiscard]] std::size_t waiting() {
    drain();
    return prepared_.size();
  }

  // The next request, in the order in which they were prepared.
  [[nodiscard]] ::io_uring_sqe take() {
    REQUIRE(waiting() > 0);
    const ::io_uring_sqe next = prepared_.front();
    prepared_.pop_front();
    return next;
  }

  void answer(const ::io_uring_sqe& request, std::int32_t res, std::uint32_t flags = 0) {
    context_.deliver({request.user_data, res, flags});
  }

  // Answers a recv or a read with these bytes.
  void answer(const ::io_uring_sqe& request, std::string_view bytes) {
    REQUIRE(bytes.size() <= request.len);
    std::memcpy(reinterpret_cast<void*>(request.addr), bytes.data(), bytes.size());
    answer(request, static_cast<std::int32_t>(bytes.size()));
  }

 private:
  // Takes everything out of the submission queue, so that it is never submitted.
  void drain() {
    ::io_uring_sq& queue = context_.handle().sq;
    for (unsigned at = queue.sqe_head; at != queue.sqe_tail; ++at) {
      prepared_.push_back(queue.sqes[at & *queue.kring_mask]);
    }
    queue.sqe_tail = queue.sqe_head;
  }

  uring::io_context& context_;
  std::deque<::io_uring_sqe> prepared_;
};

// What a send or a write would have sent.
[[nodiscard]] inline std::string_view bytes_of(const ::io_uring_sqe& request) {
  return {reinterpret_cast<const char*>(request.addr), request.len};
}

}  // namespace course_test
