// SPDX-License-Identifier: MIT
// Task 07.2: an operation in flight finds its frame. The test is the kernel.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <coroutine>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "counted.hpp"
#include "eager.hpp"
#include "io_context.hpp"
#include "manual_ring.hpp"
#include "noting_canceler.hpp"
#include "operations.hpp"
#include "stack_use.hpp"

using course_test::counted;
using course_test::eager;
using course_test::manual_ring;
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

// A request that says where it was prepared, and whether that is where its result is made.
struct prepare_and_note {
  const void** prepared_at;

  void operator()(::io_uring_sqe& sqe) const {
    ::io_uring_prep_nop(&sqe);
    *prepared_at = this;
  }
  const void* result(const uring::completion&) const { return this; }
};

eager compare_places(io_context& context, const void*& prepared_at, const void*& ended_at) {
  ended_at = co_await uring::io_request{context, prepare_and_note{&prepared_at}};
}

// As a recv from a pool will: it makes more than a count of its completion.
struct bytes_in_buffer {
  int res = 0;
  unsigned buffer_id = 0;
  bool has_buffer = false;
};

struct prepare_pool_recv {
  void operator()(::io_uring_sqe& sqe) const { ::io_uring_prep_nop(&sqe); }
  bytes_in_buffer result(const uring::completion& done) const {
    return {.res = done.res,
            .buffer_id = done.flags >> IORING_CQE_BUFFER_SHIFT,
            .has_buffer = (done.flags & IORING_CQE_F_BUFFER) != 0};
  }
};

template <typename Prepare>
eager await_bytes(uring::io_request<Prepare> request, bytes_in_buffer& received) {
  received = co_await request;
}

eager await_through(uring::io_handle io, std::optional<int>& seen) {
  const io_result done = co_await uring::nop_op(io);
  seen = done ? static_cast<int>(done.count()) : -done.error();
}

eager await_many(uring::io_handle io, course_test::stack_use& stack) {
  for (int i = 0; i < 50'000; ++i) {  // enough to show, even if each takes only some ten bytes
    (void)co_await uring::nop_op(io);
    stack.look();
  }
}

watched await_one_and_end(io_context& context, bool& over) {
  (void)co_await uring::nop_op(context);
  over = true;
}

// Suspended at its end, as a task is: the frame stays until its owner destroys it.
struct owned {
  struct promise_type : eager::promise_type {
    owned get_return_object() noexcept {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always final_suspend() const noexcept { return {}; }
  };
  std::coroutine_handle<> frame;
};

// A parameter stays as long as the frame, which is longer than the body runs.
owned await_one_and_stay(io_context& context, bool& over, counted = {}) {
  (void)co_await uring::nop_op(context);
  over = true;
}

}  // namespace

TEST_CASE("07.2 a completion resumes the coroutine that awaits it, with its result", "[07.2]") {
  io_context context;
  manual_ring kernel{context};
  std::optional<int> seen;
  await_one(context, seen);
  UNSCOPED_INFO("the coroutine went on before anything had completed");
  REQUIRE_FALSE(seen.has_value());
  UNSCOPED_INFO("nothing was prepared: await_suspend() starts the request");
  REQUIRE(kernel.waiting() == 1);
  REQUIRE(context.in_flight() == 1);
  const ::io_uring_sqe request = kernel.take();
  UNSCOPED_INFO("a crash here: await_suspend() has not remembered which coroutine to resume");
  kernel.answer(request, 42);
  UNSCOPED_INFO(
      "the operation has completed, and the coroutine that awaits it still waits: resume it");
  REQUIRE(seen.has_value());
  UNSCOPED_INFO("the result must be stored before the coroutine is resumed, which reads it");
  CHECK(seen == 42);
  CHECK(context.in_flight() == 0);
}

TEST_CASE("07.2 an error arrives unchanged", "[07.2]") {
  io_context context;
  manual_ring kernel{context};
  std::optional<int> seen;
  await_one(context, seen);
  kernel.answer(kernel.take(), -ECONNRESET);
  UNSCOPED_INFO("res is signed, and goes to await_resume() unchanged");
  CHECK(seen == -ECONNRESET);
}

TEST_CASE("07.2 a request is prepared when it is awaited, and not before", "[07.2]") {
  io_context context;
  manual_ring kernel{context};
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

TEST_CASE("07.2 completions out of order find the coroutines that wait for them", "[07.2]") {
  io_context context;
  manual_ring kernel{context};
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

TEST_CASE("07.2 a resumed coroutine may await again at once", "[07.2]") {
  io_context context;
  manual_ring kernel{context};
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

TEST_CASE("07.2 a frame may be gone when its completion has been handled", "[07.2]") {
  io_context context;
  manual_ring kernel{context};
  bool over = false;
  await_one_and_end(context, over);
  kernel.answer(kernel.take(), 1);
  REQUIRE(over);
  UNSCOPED_INFO("resume() comes last: the operation lay in the frame, and that has ended by now");
  CHECK(watched::untouched_since());
}

TEST_CASE("07.2 a frame that has ended is destroyed by its owner, and not by its operation",
          "[07.2]") {
  io_context context;
  manual_ring kernel{context};
  bool over = false;
  const owned waiting = await_one_and_stay(context, over);
  kernel.answer(kernel.take(), 0);
  REQUIRE(over);
  UNSCOPED_INFO(
      "the frame was destroyed, and its owner will destroy it again: the operation resumes the "
      "frame and does not own it");
  REQUIRE(counted::live() == 1);
  waiting.frame.destroy();
  CHECK(counted::live() == 0);
}

TEST_CASE("07.2 an interrupted request is made again by its coroutine alone", "[07.2]") {
  for (const int error : {EINTR, EAGAIN}) {
    io_context context;
    manual_ring kernel{context};
    std::optional<int> seen;
    await_one(context, seen);
    kernel.answer(kernel.take(), -error);
    UNSCOPED_INFO(
        "on_completion() made the request again by itself. A recv with MSG_DONTWAIT would "
        "spin so forever: -EINTR and -EAGAIN are results, and the coroutine decides");
    REQUIRE(kernel.waiting() == 0);
    CHECK(seen == -error);
  }
}

TEST_CASE("07.2 the request that is awaited is prepared, and no copy of it", "[07.2]") {
  io_context context;
  manual_ring kernel{context};
  const void* prepared_at = nullptr;
  const void* ended_at = nullptr;
  compare_places(context, prepared_at, ended_at);
  kernel.answer(kernel.take(), 0);
  REQUIRE(prepared_at != nullptr);
  UNSCOPED_INFO(
      "a copy of `prepare` is gone when the request is submitted, and the kernel may have "
      "the address of one of its members: start request_.prepare itself");
  CHECK(prepared_at == ended_at);
}

TEST_CASE("07.2 a buffer id reaches the coroutine with its completion", "[07.2]") {
  io_context context;
  manual_ring kernel{context};
  bytes_in_buffer received;
  await_bytes(uring::io_request{context, prepare_pool_recv{}}, received);
  kernel.answer(kernel.take(), 100, course_test::in_buffer(513));
  CHECK(received.res == 100);
  UNSCOPED_INFO("the flags are lost on the way: keep the whole completion, not its res alone");
  REQUIRE(received.has_buffer);
  CHECK(received.buffer_id == 513);
}

TEST_CASE("07.2 a request that was canceled before it began does not suspend", "[07.2]") {
  io_context context;
  manual_ring kernel{context};
  course_test::noting_canceler canceler{context};
  canceler.cancel();
  std::optional<int> seen;
  await_through(canceler, seen);
  UNSCOPED_INFO(
      "the request was submitted although it is canceled: io_handle::start, request_.io.start(), "
      "looks at the canceler first; io_queue::start does not");
  REQUIRE(kernel.waiting() == 0);
  UNSCOPED_INFO(
      "start() returned false: nothing is in flight, and nothing will ever resume the "
      "coroutine. await_suspend() returns what start() did");
  REQUIRE(seen.has_value());
  UNSCOPED_INFO(
      "no completion came, so the result is the one that done_ begins with: leave it there");
  CHECK(seen == -ECANCELED);
}

TEST_CASE("07.2 awaits that are refused take no stack", "[07.2]") {
  io_context context;
  const manual_ring kernel{context};
  course_test::noting_canceler canceler{context};
  canceler.cancel();
  course_test::stack_use stack;
  INFO(
      "start() returned false, and await_suspend() resumed the coroutine by a call, which stays on "
      "the stack: return false, and the coroutine goes on");
  await_many(canceler, stack);
  CHECK(stack.bytes() < course_test::stack_use::little);
}

TEST_CASE("07.2 an operation is in its canceler's list from its start to its completion",
          "[07.2]") {
  for (const bool canceled : {false, true}) {
    io_context context;
    manual_ring kernel{context};
    course_test::noting_canceler canceler{context};
    std::optional<int> seen;
    await_through(canceler, seen);
    UNSCOPED_INFO(
        "the canceler does not know the operation, so it cannot cancel it: io_handle::start, "
        "request_.io.start(), tells the canceler; io_queue::start does not");
    REQUIRE_FALSE(canceler.in_flight.empty());
    if (canceled) canceler.cancel();
    kernel.answer(kernel.take(), -EINTR);
    CHECK(canceler.in_flight.empty());
    UNSCOPED_INFO("a worker that a cancel has interrupted says -EINTR: only then is it canceled");
    CHECK(seen == (canceled ? -ECANCELED : -EINTR));
  }
}

TEST_CASE("07 an interrupted splice ends with EINTR, as other requests do") {
  constexpr int restart_system_call = 512;  // what the kernel says instead, see io_operation.hpp
  io_context context;
  manual_ring kernel{context};
  std::optional<int> seen;
  await_one(context, seen);
  kernel.answer(kernel.take(), -restart_system_call);
  CHECK(seen == -EINTR);
}

TEST_CASE("07 with_flags adds to a request's flags and leaves its result as it was") {
  io_context context;
  manual_ring kernel{context};
  bytes_in_buffer received;
  const auto linked =
      uring::with_flags(uring::io_request{context, prepare_pool_recv{}}, IOSQE_IO_LINK);
  await_bytes(uring::with_flags(linked, IOSQE_ASYNC), received);
  const ::io_uring_sqe request = kernel.take();
  CHECK(static_cast<int>(request.opcode) == IORING_OP_NOP);
  CHECK(static_cast<int>(request.flags) == (IOSQE_IO_LINK | IOSQE_ASYNC));
  kernel.answer(request, 7, course_test::in_buffer(3));
  CHECK(received.res == 7);
  CHECK(received.buffer_id == 3);
}
