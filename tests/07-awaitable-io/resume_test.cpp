// SPDX-License-Identifier: MIT
// Task 07.1: a completion finds its operation, and the operation its frame. The test is the kernel.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "eager.hpp"
#include "operations.hpp"
#include "scripted_kernel.hpp"

using course_test::eager;
using course_test::scripted_kernel;
using uring::io_context;
using uring::io_result;

namespace {

eager await_one(io_context& context, std::optional<int>& seen) {
  const io_result done = co_await uring::nop_op(context);
  seen = done ? static_cast<int>(done.count()) : -done.error();
}

eager await_some(io_context& context, int count, std::vector<std::size_t>& seen) {
  for (int i = 0; i < count; ++i) {
    const io_result done = co_await uring::nop_op(context);
    seen.push_back(done.count());
  }
}

template <typename Prepare>
eager await_request(uring::io_request<Prepare> request, bool& over) {
  (void)co_await request;
  over = true;
}

// An eager coroutine whose frame lies in memory that the test can look at when it is gone.
struct watched {
  static constexpr std::byte gone{0xdd};
  alignas(std::max_align_t) static inline std::array<std::byte, 4096> memory;

  struct promise_type : eager::promise_type {
    watched get_return_object() const noexcept { return {}; }
    static void* operator new(std::size_t bytes) {
      REQUIRE(bytes <= memory.size());
      return memory.data();
    }
    static void operator delete(void*, std::size_t) noexcept { memory.fill(gone); }
  };

  [[nodiscard]] static bool untouched_since() {
    return std::ranges::all_of(memory, [](std::byte each) { return each == gone; });
  }
};

watched await_one_and_end(io_context& context, bool& over) {
  (void)co_await uring::nop_op(context);
  over = true;
}

}  // namespace

TEST_CASE("07.1 a completion resumes who awaits it, with its result", "[07.1]") {
  io_context context;
  scripted_kernel kernel{context};
  std::optional<int> seen;
  await_one(context, seen);
  UNSCOPED_INFO("the coroutine went on before anything had completed");
  REQUIRE_FALSE(seen.has_value());
  UNSCOPED_INFO("nothing was prepared: await_suspend() starts the request");
  REQUIRE(kernel.waiting() == 1);
  REQUIRE(context.in_flight() == 1);
  const ::io_uring_sqe request = kernel.take();
  UNSCOPED_INFO("a crash here: await_suspend() has not remembered whom to resume");
  kernel.answer(request, 42);
  UNSCOPED_INFO("the operation has completed, and whoever awaits it still waits: resume it");
  REQUIRE(seen.has_value());
  UNSCOPED_INFO("the result must be stored before the coroutine is resumed, which reads it");
  CHECK(seen == 42);
  CHECK(context.in_flight() == 0);
}

TEST_CASE("07.1 an error arrives as it was", "[07.1]") {
  io_context context;
  scripted_kernel kernel{context};
  std::optional<int> seen;
  await_one(context, seen);
  kernel.answer(kernel.take(), -ECONNRESET);
  UNSCOPED_INFO("res is signed, and goes to await_resume() unchanged");
  CHECK(seen == -ECONNRESET);
}

TEST_CASE("07.1 a request is prepared when it is awaited, and not before", "[07.1]") {
  io_context context;
  scripted_kernel kernel{context};
  const auto request = uring::nop_op(context);
  REQUIRE(kernel.waiting() == 0);
  bool over = false;
  await_request(request, over);
  REQUIRE(kernel.waiting() == 1);
  kernel.answer(kernel.take(), 0);
  CHECK(over);

  bool again = false;
  await_request(request, again);  // a request is a value: it may be made again
  REQUIRE(kernel.waiting() == 1);
  kernel.answer(kernel.take(), 0);
  CHECK(again);
}

TEST_CASE("07.1 completions in another order find those who wait for them", "[07.1]") {
  io_context context;
  scripted_kernel kernel{context};
  std::vector<std::optional<int>> seen(3);
  std::vector<::io_uring_sqe> requests;
  for (auto& each : seen) {
    await_one(context, each);
    requests.push_back(kernel.take());
  }
  for (const std::size_t i : {2U, 0U, 1U}) {
    kernel.answer(requests[i], static_cast<std::int32_t>(i) + 10);
    UNSCOPED_INFO("user_data leads to one operation, and that to one frame");
    CHECK(seen[i] == static_cast<int>(i) + 10);
  }
}

TEST_CASE("07.1 whoever is resumed may await again at once", "[07.1]") {
  io_context context;
  scripted_kernel kernel{context};
  std::vector<std::size_t> seen;
  await_some(context, 100, seen);
  for (int i = 0; i < 100; ++i) {
    REQUIRE(kernel.waiting() == 1);
    kernel.answer(kernel.take(), i);
  }
  CHECK(seen.size() == 100);
  CHECK(seen.back() == 99);
  CHECK(context.in_flight() == 0);
}

TEST_CASE("07.1 a frame may be gone when its completion has been handled", "[07.1]") {
  io_context context;
  scripted_kernel kernel{context};
  bool over = false;
  await_one_and_end(context, over);
  kernel.answer(kernel.take(), 1);
  REQUIRE(over);
  UNSCOPED_INFO("resume() comes last: the operation lay in the frame, and that has ended by now");
  CHECK(watched::untouched_since());
}
