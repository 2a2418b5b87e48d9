// SPDX-License-Identifier: MIT
// The test as the kernel: it takes what a context has prepared, before anything is submitted, and
// answers in whatever order it likes.
// Owns     nothing.
// Lifetime the context outlives it, and never turns while it is used: nothing reaches the kernel.
// Threads  the test's own.
// Errors   taking a request that nobody has prepared fails the test case.
#pragma once

#include <liburing.h>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "io_context.hpp"

namespace course_test {

class scripted_kernel {
 public:
  explicit scripted_kernel(uring::io_context& context) noexcept : context_{context} {}

  [[nodiscard]] unsigned waiting() const noexcept { return queue().sqe_tail - taken_; }

  // The next request, in the order in which they were prepared.
  [[nodiscard]] ::io_uring_sqe take() {
    REQUIRE(waiting() > 0);
    const unsigned mask = *queue().kring_mask;
    return queue().sqes[taken_++ & mask];
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
  [[nodiscard]] const ::io_uring_sq& queue() const noexcept { return context_.handle().sq; }

  uring::io_context& context_;
  unsigned taken_ = 0;
};

// What a send or a write would have sent.
[[nodiscard]] inline std::string_view bytes_of(const ::io_uring_sqe& request) {
  return {reinterpret_cast<const char*>(request.addr), request.len};
}

}  // namespace course_test
