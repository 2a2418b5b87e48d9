// SPDX-License-Identifier: MIT
// What chapter 10 will stand on: a multishot request as a stream, its source, and an end that is
// awaited whatever happens between two next().
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "cancel_source.hpp"
#include "counted.hpp"
#include "finally.hpp"
#include "io_context.hpp"
#include "manual_ring.hpp"
#include "multishot_stream.hpp"
#include "operations.hpp"
#include "task.hpp"

using course_test::counted;
using course_test::cqe_more;
using course_test::manual_ring;
using uring::cancel_source;
using uring::io_context;
using uring::task;

namespace {

struct prepare_ticks {
  void operator()(::io_uring_sqe& sqe) const {
    ::io_uring_prep_poll_multishot(&sqe, 99, 0);  // nobody's: no request reaches the kernel
  }
};

using ticks = course_test::multishot_stream<prepare_ticks>;

// What the consumer has seen, as text: "1 2 -105 end".
struct story {
  std::string text;
  void note(const std::string& what) { text += (text.empty() ? "" : " ") + what; }
};

using consumer = task<> (*)(io_context& context, ticks& stream, story& seen, counted);

task<> note_all(io_context&, ticks& stream, story& seen, counted) {
  for (;;) {
    const std::optional<uring::completion> tick = co_await stream.next();
    if (!tick.has_value()) break;
    seen.note(std::to_string(tick->res));
  }
  seen.note("end");
}

task<> throw_after_two(io_context&, ticks& stream, story& seen, counted) {
  for (int i = 0; i < 2; ++i) {
    const std::optional<uring::completion> tick = co_await stream.next();
    seen.note(tick.has_value() ? std::to_string(tick->res) : "end");
  }
  throw std::runtime_error{"between two next()"};
}

// Does something else for a while, when it has taken one.
task<> pause_after_one(io_context& context, ticks& stream, story& seen, counted) {
  const std::optional<uring::completion> first = co_await stream.next();
  seen.note(first.has_value() ? std::to_string(first->res) : "end");
  (void)co_await uring::nop_op(context);
  seen.note("goes on");
  co_await note_all(context, stream, seen, {});
}

task<> leave_after_one(io_context& context, ticks& stream, story& seen, counted) {
  const std::optional<uring::completion> first = co_await stream.next();
  seen.note(first.has_value() ? std::to_string(first->res) : "end");
  (void)co_await uring::nop_op(context);
  seen.note("leaves");
}

task<> use_stream(io_context& context, cancel_source& source, consumer consume, story& seen,
                  counted) {
  ticks stream{uring::child_of{source}, prepare_ticks{}};
  try {
    co_await uring::finally(consume(context, stream, seen, {}), stream.end());
  } catch (const std::runtime_error& error) {
    seen.note(std::string{"threw “"} + error.what() + "”");
  }
  UNSCOPED_INFO("the frame goes on, and the kernel has the address of an operation in it");
  CHECK_FALSE(stream.is_in_flight());
  seen.note("dropped " + std::to_string(stream.dropped()));
}

}  // namespace

TEST_CASE("08 a stream gives every completion in order, and ends with the final one", "[08]") {
  io_context context;
  manual_ring kernel{context};
  cancel_source source{context};
  story seen;
  context.spawn(use_stream(context, source, note_all, seen, {}));
  const ::io_uring_sqe request = kernel.take();
  kernel.answer(request, 1, cqe_more);
  CHECK(context.in_flight() == 1);
  kernel.turn({{request.user_data, 2, cqe_more}, {request.user_data, 3, cqe_more}});
  CHECK(seen.text == "1 2 3");
  kernel.answer(request, 4);
  CHECK(seen.text == "1 2 3 4 end dropped 0");
  UNSCOPED_INFO("a request that has ended by itself was canceled: it is not in the list any more");
  CHECK(kernel.waiting() == 0);
  CHECK(context.in_flight() == 0);
  CHECK(counted::live() == 0);
}

TEST_CASE("08 a cancel ends a stream, and completions on their way are still given", "[08]") {
  for (const bool cancel_is_answered_first : {true, false}) {
    io_context context;
    manual_ring kernel{context};
    cancel_source source{context};
    story seen;
    context.spawn(use_stream(context, source, note_all, seen, {}));
    const ::io_uring_sqe request = kernel.take();
    kernel.answer(request, 1, cqe_more);
    source.cancel();
    const ::io_uring_sqe cancel = kernel.take();
    CHECK(cancel.opcode == IORING_OP_ASYNC_CANCEL);
    CHECK(cancel.addr == request.user_data);
    if (cancel_is_answered_first) kernel.answer(cancel, 0);
    kernel.answer(request, 2, cqe_more);
    UNSCOPED_INFO("a completion with F_MORE, or the cancel's answer, was taken for the end");
    CHECK(seen.text == "1 2");
    kernel.answer(request, -ECANCELED);
    CHECK(seen.text == "1 2 -125 end dropped 0");
    CHECK(counted::live() == 0);
    if (!cancel_is_answered_first) kernel.answer(cancel, -EALREADY);
    CHECK(kernel.waiting() == 0);
    CHECK(context.in_flight() == 0);
  }
}

TEST_CASE("08 an error that has F_MORE does not end a stream", "[08]") {
  io_context context;
  manual_ring kernel{context};
  cancel_source source{context};
  story seen;
  context.spawn(use_stream(context, source, note_all, seen, {}));
  const ::io_uring_sqe request = kernel.take();
  kernel.answer(request, -ENOBUFS, cqe_more);
  CHECK(seen.text == "-105");
  CHECK(context.in_flight() == 1);
  source.cancel();
  UNSCOPED_INFO("only the final completion takes a request out of its source's list");
  REQUIRE(kernel.waiting() == 1);
  const ::io_uring_sqe cancel = kernel.take();
  CHECK(cancel.addr == request.user_data);
  kernel.turn({{cancel.user_data, 0}, {request.user_data, -ECANCELED}});
  CHECK(seen.text == "-105 -125 end dropped 0");
  CHECK(context.in_flight() == 0);
}

TEST_CASE("08 a throw between two next() waits for the stream's end", "[08]") {
  io_context context;
  manual_ring kernel{context};
  cancel_source source{context};
  story seen;
  context.spawn(use_stream(context, source, throw_after_two, seen, {}));
  const ::io_uring_sqe request = kernel.take();
  kernel.turn({{request.user_data, 1, cqe_more}, {request.user_data, 2, cqe_more}});
  UNSCOPED_INFO("finally() must ask the stream to end, and let nobody go on before it has");
  CHECK(seen.text == "1 2");
  REQUIRE(kernel.waiting() == 1);
  const ::io_uring_sqe cancel = kernel.take();
  kernel.turn({{request.user_data, 3, cqe_more}, {cancel.user_data, 0}});
  CHECK(seen.text == "1 2");
  CHECK_FALSE(source.is_canceled());
  kernel.answer(request, -ECANCELED);
  UNSCOPED_INFO(
      "completions that came in the meantime were dropped, and the exception is the consumer's");
  CHECK(seen.text == "1 2 threw “between two next()” dropped 2");
  CHECK(context.in_flight() == 0);
  CHECK(counted::live() == 0);
}

TEST_CASE("08 a stop lets a consumer take the completions that had come, or drop them", "[08]") {
  struct way {
    consumer consume;
    const char* story;
  };
  for (const way& each : {way{pause_after_one, "1 goes on 2 3 -125 end dropped 0"},
                          way{leave_after_one, "1 leaves dropped 3"}}) {
    io_context context;
    manual_ring kernel{context};
    cancel_source source{context};
    story seen;
    context.spawn(use_stream(context, source, each.consume, seen, {}));
    const ::io_uring_sqe request = kernel.take();
    kernel.answer(request, 1, cqe_more);
    const ::io_uring_sqe nop = kernel.take();
    kernel.turn({{request.user_data, 2, cqe_more}, {request.user_data, 3, cqe_more}});
    context.stop();
    kernel.answer(nop, 0);
    UNSCOPED_INFO("the stream has not ended: the consumer may not leave its frame");
    CHECK(counted::live() > 0);
    kernel.answer(request, -ECANCELED);
    CHECK(seen.text == each.story);
    CHECK(counted::live() == 0);
  }
}

TEST_CASE("08 a stream below a source that was canceled before never starts", "[08]") {
  io_context context;
  manual_ring kernel{context};
  cancel_source source{context};
  source.cancel();
  story seen;
  context.spawn(use_stream(context, source, note_all, seen, {}));
  CHECK(seen.text == "end dropped 0");
  CHECK(kernel.waiting() == 0);
  CHECK(counted::live() == 0);
}
