// SPDX-License-Identifier: MIT
// Task 10.2: what a consumer gets, and when a request is armed for it. The test is the kernel.
#include <liburing.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>

#include "number_stream.hpp"

using course_test::cqe_more;
using course_test::number_stream;
using course_test::prepare_numbers;
using course_test::scene;
using course_test::take_all;
using course_test::take_slowly;
using course_test::take_some;

TEST_CASE("10 nothing is submitted before the first wait", "[10]") {
  scene here;
  const number_stream numbers{here.source, prepare_numbers{}};
  CHECK_FALSE(numbers.is_armed());
  CHECK(here.kernel.waiting() == 0);
}

TEST_CASE("10.2 one request brings many items, in order", "[10.2]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}};
  here.context.spawn(take_some(numbers, 4, here.seen));
  UNSCOPED_INFO("the first wait arms the request");
  REQUIRE(here.kernel.waiting() == 1);
  const ::io_uring_sqe request = here.kernel.take();
  CHECK(request.opcode == IORING_OP_POLL_ADD);
  here.kernel.answer(request, 1, cqe_more);
  UNSCOPED_INFO("an item has come and the consumer was not resumed");
  CHECK(here.seen.text == "1");
  here.kernel.turn({{request.user_data, 2, cqe_more}, {request.user_data, 3, cqe_more}});
  CHECK(here.seen.text == "1 2 3");
  UNSCOPED_INFO("the request goes on (IORING_CQE_F_MORE), and a second one was armed beside it");
  CHECK(here.kernel.waiting() == 0);
  here.kernel.answer(request, 4);
  CHECK(here.seen.text == "1 2 3 4");
  CHECK(here.context.in_flight() == 0);
}

TEST_CASE("10.2 the final completion is an item, and the next wait arms again", "[10.2]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}};
  here.context.spawn(take_some(numbers, 3, here.seen));
  const ::io_uring_sqe first = here.kernel.take();
  here.kernel.answer(first, 1, cqe_more);
  here.kernel.answer(first, 2);
  UNSCOPED_INFO("a completion without IORING_CQE_F_MORE is the last one, and still has an item");
  CHECK(here.seen.text == "1 2");
  UNSCOPED_INFO("no request is in flight, and the consumer waits: nobody will ever wake it");
  REQUIRE(here.kernel.waiting() == 1);
  CHECK(numbers.is_armed());
  here.kernel.answer(here.kernel.take(), 3);
  CHECK(here.seen.text == "1 2 3");
  UNSCOPED_INFO("nobody waits any more: there is nothing to arm a request for");
  CHECK(here.kernel.waiting() == 0);
}

TEST_CASE("10.2 an error that has F_MORE ends nothing", "[10.2]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}};
  here.context.spawn(take_some(numbers, 2, here.seen));
  const ::io_uring_sqe request = here.kernel.take();
  here.kernel.answer(request, -ECONNABORTED, cqe_more);
  CHECK(here.seen.text == "-103");
  UNSCOPED_INFO("F_MORE alone says whether the request goes on, and not res: two are in flight");
  CHECK(here.kernel.waiting() == 0);
  CHECK(numbers.is_armed());
  here.kernel.answer(request, 2);
  CHECK(here.seen.text == "-103 2");
}

TEST_CASE("10.2 an error without F_MORE ends the request, and the next wait arms again", "[10.2]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}};
  here.context.spawn(take_some(numbers, 2, here.seen));
  here.kernel.answer(here.kernel.take(), -ENOBUFS);
  CHECK(here.seen.text == "-105");
  UNSCOPED_INFO("the request has ended, and nothing arms it again");
  REQUIRE(here.kernel.waiting() == 1);
  here.kernel.answer(here.kernel.take(), 2);
  CHECK(here.seen.text == "-105 2");
}

TEST_CASE("10.4 items that come while nobody waits are kept, and taken before a request is armed",
          "[10.4]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}};
  here.context.spawn(take_slowly(here.context, numbers, here.seen));
  const ::io_uring_sqe request = here.kernel.take();
  here.kernel.answer(request, 1, cqe_more);
  const ::io_uring_sqe nap = here.kernel.take();
  here.kernel.turn({{request.user_data, 2, cqe_more}, {request.user_data, 3}});
  CHECK(here.seen.text == "1");
  CHECK(numbers.size() == 2);
  here.kernel.answer(nap, 0);
  UNSCOPED_INFO("the first item is given first");
  CHECK(here.seen.text == "1 2");
  const ::io_uring_sqe second_nap = here.kernel.take();
  UNSCOPED_INFO("an item is there: no request is needed yet");
  CHECK(here.kernel.waiting() == 0);
  here.kernel.answer(second_nap, 0);
  CHECK(here.seen.text == "1 2 3");
  here.kernel.answer(here.kernel.take(), 0);
  const ::io_uring_sqe again = here.kernel.take();
  CHECK(again.opcode == IORING_OP_POLL_ADD);
  here.source.cancel();
  here.kernel.answer(again, 4);
  CHECK(here.seen.text == "1 2 3 4");
}

TEST_CASE("10.2 a stream whose source was canceled submits nothing", "[10.2]") {
  scene here;
  here.source.cancel();
  number_stream numbers{here.source, prepare_numbers{}};
  here.context.spawn(take_all(numbers, here.seen));
  UNSCOPED_INFO("start() refuses, so nothing can come: it must not wait");
  CHECK(here.seen.text == "canceled");
  CHECK(here.kernel.waiting() == 0);
}

TEST_CASE("10.2 while the context stops no request is armed", "[10.2]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}};
  here.context.spawn(take_all(numbers, here.seen));
  const ::io_uring_sqe request = here.kernel.take();
  here.context.stop();
  here.kernel.answer(request, 1);
  UNSCOPED_INFO("the last item is given, and the next wait would be in vain");
  CHECK(here.seen.text == "1 canceled");
  CHECK(here.context.in_flight() == 1);  // the stop's own cancel
}

TEST_CASE("10.2 a thousand requests, each of which ends at once, are armed one at a time",
          "[10.2]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}};
  here.context.spawn(take_some(numbers, 1000, here.seen));
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(here.kernel.waiting() == 1);
    here.kernel.answer(here.kernel.take(), i);
  }
  CHECK(here.kernel.waiting() == 0);
  CHECK(here.context.in_flight() == 0);
}
