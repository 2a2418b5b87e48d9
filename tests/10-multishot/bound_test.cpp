// SPDX-License-Identifier: MIT
// Task 10.4: a consumer that is slower than its producer. The test is the kernel.
#include <liburing.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstdint>

#include "number_stream.hpp"

using course_test::cqe_more;
using course_test::number_stream;
using course_test::prepare_numbers;
using course_test::scene;
using course_test::take_slowly;

namespace {

// A stream of at most three items, whose consumer has one and is busy.
struct busy_consumer : scene {
  busy_consumer() {
    context.spawn(take_slowly(context, numbers, seen));
    request = kernel.take().user_data;
    bring(1);
    nap = kernel.take().user_data;
  }

  // One item more, with or without F_MORE.
  void bring(std::int32_t res, std::uint32_t flags = cqe_more) {
    kernel.turn({{request, res, flags}});
  }

  // The consumer takes the next item; if there is one it is busy again.
  void go_on() {
    kernel.turn({{nap, 0}});
    if (kernel.waiting() > 0) nap = kernel.take().user_data;
  }

  void fill() {
    for (int i = 2; i <= 4; ++i) bring(i);
  }

  number_stream numbers{source, prepare_numbers{}, 3};
  // The user_data of two requests.
  std::uint64_t request = 0;
  std::uint64_t nap = 0;
};

}  // namespace

TEST_CASE("10.4 at the bound the request is asked to end, and not before", "[10.4]") {
  busy_consumer here;
  here.bring(2);
  here.bring(3);
  UNSCOPED_INFO("two items of three: the request may go on");
  CHECK(here.kernel.waiting() == 0);
  here.bring(4);
  UNSCOPED_INFO("three items wait, as many as may, and nobody has asked the request to end");
  REQUIRE(here.kernel.waiting() == 1);
  const ::io_uring_sqe cancel = here.kernel.take();
  CHECK(cancel.opcode == IORING_OP_ASYNC_CANCEL);
  UNSCOPED_INFO("the kernel finds a request by its user_data");
  CHECK(cancel.addr == here.request);
  UNSCOPED_INFO("other flags would end other requests");
  CHECK(cancel.cancel_flags == 0);
  here.kernel.turn({{cancel.user_data, 0}, {here.request, -ECANCELED}});
}

TEST_CASE("10.4 the request is asked once, and items that come before its end are kept", "[10.4]") {
  busy_consumer here;
  here.fill();
  const ::io_uring_sqe cancel = here.kernel.take();
  here.bring(5);
  here.bring(6);
  UNSCOPED_INFO("one cancel is enough: it was asked to end already");
  CHECK(here.kernel.waiting() == 0);
  UNSCOPED_INFO("an item was dropped: the request was asked to end, and its items still count");
  CHECK(here.numbers.size() == 5);
  here.kernel.turn({{cancel.user_data, 0}, {here.request, -ECANCELED}});
  UNSCOPED_INFO("-ECANCELED is no item here: only the stream has asked for it");
  CHECK(here.numbers.size() == 5);
  for (int i = 0; i < 5; ++i) here.go_on();
  UNSCOPED_INFO("first come, first served");
  CHECK(here.seen.text == "1 2 3 4 5 6");
}

TEST_CASE("10.4 when everything is taken the next wait arms again", "[10.4]") {
  busy_consumer here;
  here.fill();
  const ::io_uring_sqe cancel = here.kernel.take();
  here.kernel.turn({{cancel.user_data, 0}, {here.request, -ECANCELED}});
  for (int i = 0; i < 3; ++i) {
    UNSCOPED_INFO("items wait, and a request was armed beside them");
    CHECK_FALSE(here.numbers.is_armed());
    here.go_on();
  }
  here.go_on();  // and now it waits for an item
  UNSCOPED_INFO("the queue is empty and the request has ended: nothing will come");
  REQUIRE(here.numbers.is_armed());
  here.request = here.nap;
  here.bring(5, 0);
  CHECK(here.seen.text == "1 2 3 4 5");
}

TEST_CASE("10.4 a consumer that waits before the request has ended gets a new request", "[10.4]") {
  busy_consumer here;
  here.fill();
  const ::io_uring_sqe cancel = here.kernel.take();
  for (int i = 0; i < 4; ++i) here.go_on();  // all are taken, and it waits
  CHECK(here.seen.text == "1 2 3 4");
  UNSCOPED_INFO("the old request is still in flight: there would be two");
  CHECK(here.kernel.waiting() == 0);
  here.kernel.turn({{cancel.user_data, 0}, {here.request, -ECANCELED}});
  UNSCOPED_INFO(
      "the request has ended because we asked it to, and the consumer waits for an item: arm "
      "again. It gets no -ECANCELED: nobody has canceled the stream");
  CHECK(here.seen.text == "1 2 3 4");
  REQUIRE(here.kernel.waiting() == 1);
  here.request = here.kernel.take().user_data;
  here.bring(5, 0);
  CHECK(here.seen.text == "1 2 3 4 5");
}

TEST_CASE("10.4 a request that ends by itself at the bound loses nothing", "[10.4]") {
  busy_consumer here;
  here.fill();
  const ::io_uring_sqe cancel = here.kernel.take();
  // A full completion queue, for example: the last item, and then the cancel finds nothing.
  here.kernel.turn({{here.request, 5}, {cancel.user_data, -ENOENT}});
  for (int i = 0; i < 5; ++i) here.go_on();
  CHECK(here.seen.text == "1 2 3 4 5");
  REQUIRE(here.numbers.is_armed());
  // The second request has a bound of its own.
  here.request = here.nap;
  here.bring(6);
  here.nap = here.kernel.take().user_data;
  for (int i = 7; i <= 9; ++i) here.bring(i);
  UNSCOPED_INFO("the second request was never asked to end: the first one's cancel does not count");
  REQUIRE(here.kernel.waiting() == 1);
  CHECK(here.kernel.take().addr == here.request);
  here.bring(-ECANCELED, 0);
  for (int i = 0; i < 3; ++i) here.go_on();
  CHECK(here.seen.text == "1 2 3 4 5 6 7 8 9");
}

TEST_CASE("10.4 a final completion that fills the queue needs no cancel", "[10.4]") {
  busy_consumer here;
  here.bring(2);
  here.bring(3);
  here.bring(4, 0);
  UNSCOPED_INFO("the request has ended by itself: there is nothing to cancel");
  CHECK(here.kernel.waiting() == 0);
  for (int i = 0; i < 3; ++i) here.go_on();
  CHECK(here.seen.text == "1 2 3 4");
}

TEST_CASE("10.4 a stream that is canceled at its bound ends, and is not armed again", "[10.4]") {
  busy_consumer here;
  here.fill();
  (void)here.kernel.take();  // the stream's cancel
  for (int i = 0; i < 4; ++i) here.go_on();
  here.source.cancel();
  (void)here.kernel.take();  // the source's
  here.bring(-ECANCELED, 0);
  UNSCOPED_INFO("arm() refuses now, and the consumer waits: it must be told");
  CHECK(here.seen.text == "1 2 3 4 canceled");
  CHECK(here.kernel.waiting() == 0);
}
