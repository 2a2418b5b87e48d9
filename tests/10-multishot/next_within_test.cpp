// SPDX-License-Identifier: MIT
// A wait for an item that ends early: the request goes on, and no item is lost.
#include <liburing.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>

#include "next_within.hpp"
#include "number_stream.hpp"

using namespace std::chrono_literals;
using course_test::cqe_more;
using course_test::number;
using course_test::number_stream;
using course_test::prepare_numbers;
using course_test::scene;
using course_test::story;
using uring::cancel_source;
using uring::task;

namespace {

task<> wait_for(number_stream& from, std::chrono::nanoseconds at_most, story& seen) {
  const number got = co_await uring::next_within(from, at_most);
  seen.note(got);
}

task<> wait_until(number_stream& from, cancel_source& patience, story& seen) {
  const number got = co_await uring::next_unless_canceled(from, patience);
  seen.note(got);
}

}  // namespace

TEST_CASE("10 a deadline ends the wait, and the request goes on", "[10]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}};
  here.context.spawn(wait_for(numbers, 1s, here.seen));
  const ::io_uring_sqe request = here.kernel.take();
  const ::io_uring_sqe timeout = here.kernel.take();
  CHECK(timeout.opcode == IORING_OP_TIMEOUT);
  here.kernel.answer(timeout, -ETIME);
  REQUIRE(here.kernel.waiting() == 1);
  const ::io_uring_sqe resumption = here.kernel.take();
  CHECK(resumption.opcode == IORING_OP_NOP);
  // An item that comes between the deadline and the resumption is for the next wait.
  here.kernel.turn({{request.user_data, 1, cqe_more}, {resumption.user_data, 0}});
  CHECK(here.seen.text == "-62");
  CHECK(numbers.is_armed());
  here.context.spawn(wait_for(numbers, 1s, here.seen));
  CHECK(here.seen.text == "-62 1");
  CHECK(here.kernel.waiting() == 0);
  here.kernel.answer(request, 2);
  CHECK(numbers.size() == 1);
}

TEST_CASE("10 an item that comes in time ends the deadline", "[10]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}};
  here.context.spawn(wait_for(numbers, 1s, here.seen));
  const ::io_uring_sqe request = here.kernel.take();
  const ::io_uring_sqe timeout = here.kernel.take();
  here.kernel.answer(request, 1);
  const ::io_uring_sqe cancel = here.kernel.take();
  CHECK(cancel.addr == timeout.user_data);
  here.kernel.turn({{cancel.user_data, 0}, {timeout.user_data, -ECANCELED}});
  CHECK(here.seen.text == "1");
  CHECK(here.context.in_flight() == 0);
}

TEST_CASE("10 an item that comes together with its deadline is given once", "[10]") {
  for (const bool item_is_first : {true, false}) {
    scene here;
    number_stream numbers{here.source, prepare_numbers{}};
    here.context.spawn(wait_for(numbers, 1s, here.seen));
    const ::io_uring_sqe request = here.kernel.take();
    const ::io_uring_sqe timeout = here.kernel.take();
    const course_test::scripted_answer item{request.user_data, 1, cqe_more};
    const course_test::scripted_answer late{timeout.user_data, -ETIME};
    here.kernel.turn(item_is_first ? std::vector{item, late} : std::vector{late, item});
    while (here.kernel.waiting() > 0) here.kernel.answer(here.kernel.take(), 0);
    CHECK(here.seen.text == (item_is_first ? "1" : "-62"));
    UNSCOPED_INFO("the item was lost, or it is there twice");
    CHECK(numbers.size() == (item_is_first ? 0 : 1));
    here.kernel.answer(request, 2);
  }
}

TEST_CASE("10 a cancel of the stream ends a wait that has a deadline", "[10]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}};
  here.context.spawn(wait_for(numbers, 1s, here.seen));
  const ::io_uring_sqe request = here.kernel.take();
  const ::io_uring_sqe timeout = here.kernel.take();
  here.source.cancel();
  (void)here.kernel.take();
  here.kernel.answer(request, -ECANCELED);
  here.kernel.answer(timeout, -ECANCELED);
  CHECK(here.seen.text == "canceled");
}

TEST_CASE("10 a wait whose patience is gone already still takes an item that is there", "[10]") {
  scene here;
  number_stream numbers{here.source, prepare_numbers{}};
  cancel_source patience{here.context};
  here.context.spawn(wait_until(numbers, patience, here.seen));
  const ::io_uring_sqe request = here.kernel.take();
  patience.cancel();
  here.kernel.turn({{here.kernel.take().user_data, 0}, {request.user_data, 1}});
  here.context.spawn(wait_until(numbers, patience, here.seen));
  here.context.spawn(wait_until(numbers, patience, here.seen));
  CHECK(here.seen.text == "canceled 1 canceled");
  UNSCOPED_INFO("nobody has the patience to wait: nothing is to be armed");
  CHECK(here.kernel.waiting() == 0);
}
