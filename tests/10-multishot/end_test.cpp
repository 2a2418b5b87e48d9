// SPDX-License-Identifier: MIT
// Tasks 10.3 and 10.4: the end of a stream. The test is the kernel.
#include <liburing.h>
#include <sys/socket.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "buffer_ring.hpp"
#include "bytes.hpp"
#include "counted.hpp"
#include "multishot_operations.hpp"
#include "number_stream.hpp"
#include "socket_pair.hpp"

using course_test::counted;
using course_test::cqe_more;
using course_test::number_stream;
using course_test::prepare_numbers;
using course_test::scene;
using course_test::story;
using course_test::take_all;
using course_test::take_slowly;
using course_test::take_some;
using uring::io_context;
using uring::task;

namespace {

// Takes two items and throws.
task<> take_two_and_throw(number_stream& from, story& seen) {
  co_await take_some(from, 2, seen);
  throw std::runtime_error{"between two items"};
}

// Takes one, is busy for a while, and leaves.
task<> take_one_and_leave(io_context& context, number_stream& from, story& seen) {
  co_await take_some(from, 1, seen);
  (void)co_await uring::nop_op(context);
  seen.note("leaves");
}

// A consumer, and the stream's end after it: what every owner of a stream does.
task<> use(number_stream& from, task<> consumer, story& seen) {
  try {
    co_await uring::finally(std::move(consumer), from.end());
  } catch (const std::runtime_error& error) {
    seen.note(std::string{"threw: "} + error.what());
  }
  UNSCOPED_INFO("end() has returned, and the kernel still has the address of the request");
  CHECK_FALSE(from.is_armed());
  CHECK(from.size() == 0);
  seen.note("end");
}

task<> disarm_and_note(number_stream& from, story& seen) {
  co_await from.disarm();
  seen.note("disarmed");
}

task<> take_first(uring::recv_stream& from) {
  const uring::received got = co_await from.next();
  CHECK(course_test::text_of(got.bytes()) == "the firs");
}

}  // namespace

TEST_CASE("10.3 a cancel of the source ends the stream, after its final completion", "[10.3]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}};
  here.context.spawn(use(numbers, take_all(numbers, here.seen), here.seen));
  const ::io_uring_sqe request = here.kernel.take();
  here.kernel.answer(request, 1, cqe_more);
  here.source.cancel();
  const ::io_uring_sqe cancel = here.kernel.take();
  here.kernel.answer(cancel, 0);
  here.kernel.answer(request, 2, cqe_more);
  UNSCOPED_INFO("a completion with F_MORE, or the cancel's own answer, was taken for the end");
  CHECK(here.seen.text == "1 2");
  here.kernel.answer(request, -ECANCELED);
  CHECK(here.seen.text == "1 2 canceled end");
  CHECK(here.kernel.waiting() == 0);
  CHECK(here.context.in_flight() == 0);
}

TEST_CASE("10.3 end() asks the request to end, and returns after its final completion", "[10.3]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}};
  here.context.spawn(use(numbers, take_some(numbers, 1, here.seen), here.seen));
  const ::io_uring_sqe request = here.kernel.take();
  here.kernel.answer(request, 1, cqe_more);
  UNSCOPED_INFO("the consumer has left; the request goes on, and was not asked to end");
  REQUIRE(here.kernel.waiting() == 1);
  const ::io_uring_sqe cancel = here.kernel.take();
  CHECK(cancel.addr == request.user_data);
  here.kernel.answer(cancel, 0);
  UNSCOPED_INFO("to cancel is to ask: the request ends with its own final completion");
  CHECK(here.seen.text == "1");
  here.kernel.answer(request, -ECANCELED);
  CHECK(here.seen.text == "1 end");
  UNSCOPED_INFO("the source has other requests, too: end() is no cancel of all of them");
  CHECK_FALSE(here.source.is_canceled());
}

TEST_CASE("10.3 end() of a stream that is not in flight asks nobody and returns at once",
          "[10.3]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}};
  here.context.spawn(use(numbers, take_some(numbers, 0, here.seen), here.seen));
  CHECK(here.seen.text == "end");
  CHECK(here.kernel.waiting() == 0);

  number_stream others{here.source, prepare_numbers{}};
  here.context.spawn(use(others, take_some(others, 1, here.seen), here.seen));
  here.kernel.answer(here.kernel.take(), 1);
  UNSCOPED_INFO("a request that has ended by itself was waited for");
  CHECK(here.seen.text == "end 1 end");
  CHECK(here.kernel.waiting() == 0);
}

TEST_CASE("10.3 a throw between two items waits for the end of the stream", "[10.3]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}};
  here.context.spawn(use(numbers, take_two_and_throw(numbers, here.seen), here.seen));
  const ::io_uring_sqe request = here.kernel.take();
  here.kernel.turn({{request.user_data, 1, cqe_more}, {request.user_data, 2, cqe_more}});
  CHECK(here.seen.text == "1 2");
  const ::io_uring_sqe cancel = here.kernel.take();
  here.kernel.answer(cancel, 0);
  CHECK(here.seen.text == "1 2");
  here.kernel.answer(request, -ECANCELED);
  CHECK(here.seen.text == "1 2 threw: between two items end");
}

TEST_CASE("10.4 at a stop the consumer may take queued items, or end() drops them", "[10.4]") {
  for (const bool takes_them : {true, false}) {
    scene here;
    number_stream numbers{here.source, prepare_numbers{}};
    here.context.spawn(use(numbers,
                           takes_them ? take_slowly(here.context, numbers, here.seen)
                                      : take_one_and_leave(here.context, numbers, here.seen),
                           here.seen));
    const ::io_uring_sqe request = here.kernel.take();
    here.kernel.answer(request, 1, cqe_more);
    const ::io_uring_sqe nap = here.kernel.take();
    here.kernel.turn({{request.user_data, 2, cqe_more}, {request.user_data, 3, cqe_more}});
    here.context.stop();
    here.kernel.answer(request, -ECANCELED);
    here.kernel.answer(nap, 0);
    while (here.kernel.waiting() > 0) here.kernel.answer(here.kernel.take(), 0);
    CHECK(here.seen.text == (takes_them ? "1 2 3 canceled end" : "1 leaves end"));
    UNSCOPED_INFO("items that nobody took: end() drops them, and what they own goes with them");
    CHECK(counted::live() == 0);
  }
}

TEST_CASE("10.4 a request that was asked to end at the bound is not asked again", "[10.4]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}, 2};
  here.context.spawn(use(numbers, take_one_and_leave(here.context, numbers, here.seen), here.seen));
  const ::io_uring_sqe request = here.kernel.take();
  here.kernel.answer(request, 1, cqe_more);
  const ::io_uring_sqe nap = here.kernel.take();
  here.kernel.turn({{request.user_data, 2, cqe_more}, {request.user_data, 3, cqe_more}});
  const ::io_uring_sqe cancel = here.kernel.take();
  here.kernel.answer(nap, 0);
  CHECK(here.seen.text == "1 leaves");
  CHECK(here.kernel.waiting() == 0);
  here.kernel.turn({{cancel.user_data, 0}, {request.user_data, -ECANCELED}});
  CHECK(here.seen.text == "1 leaves end");
}

TEST_CASE("10.4 disarm() keeps the items that have come, and the next wait arms again", "[10.4]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}};
  here.context.spawn(take_some(numbers, 1, here.seen));
  const ::io_uring_sqe request = here.kernel.take();
  here.kernel.answer(request, 1, cqe_more);
  here.context.spawn(disarm_and_note(numbers, here.seen));
  const ::io_uring_sqe cancel = here.kernel.take();
  here.kernel.turn({{request.user_data, 2, cqe_more}, {cancel.user_data, 0}});
  CHECK(here.seen.text == "1");
  here.kernel.answer(request, 3);
  CHECK(here.seen.text == "1 disarmed");
  UNSCOPED_INFO("disarm() drops nothing: that is what end() does");
  CHECK(numbers.size() == 2);
  here.context.spawn(take_some(numbers, 3, here.seen));
  CHECK(here.seen.text == "1 disarmed 2 3");
  REQUIRE(here.kernel.waiting() == 1);
  here.kernel.answer(here.kernel.take(), 4);
  CHECK(here.seen.text == "1 disarmed 2 3 4");
}

TEST_CASE("10.4 bytes that nobody takes bring their buffers home when the stream ends", "[10.4]") {
  io_context context;
  uring::buffer_ring ring{context, 0, 8};
  uring::buffer_pool pool{context, ring, {8, 8}};
  const course_test::socket_pair pair = course_test::unix_pair();
  constexpr std::string_view text = "the first, and what is behind it";
  REQUIRE(::send(pair.ours.get(), text.data(), text.size(), MSG_NOSIGNAL) == 32);
  uring::recv_stream arriving{context, {pair.theirs.get(), &pool}};
  context.run(uring::finally(take_first(arriving), arriving.end()));
  UNSCOPED_INFO("an item that was dropped must bring its buffer home");
  CHECK(pool.lent() == 0);
}
