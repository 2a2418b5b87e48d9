// SPDX-License-Identifier: MIT
// Tasks 10.2 and 10.3: a multishot request by itself: whether it is in flight, and how it ends. The
// test is the kernel.
#include <liburing.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "multishot_request.hpp"
#include "number_stream.hpp"
#include "task.hpp"

using course_test::cqe_more;
using course_test::prepare_numbers;
using course_test::scene;
using uring::completion;
using uring::task;

namespace {

// Notes each completion.
class noted final : public uring::multishot_request {
 public:
  explicit noted(const uring::io_handle& io) : multishot_request{io, &on_completion} {}

  bool arm() { return ensure_armed(prepare_numbers{}); }

  std::vector<std::int32_t> results;

 private:
  static void on_completion(io_operation& self, const completion& done) {
    auto& to = static_cast<noted&>(self);
    to.results.push_back(to.note(done).res);
    to.resume_disarming();
  }
};

task<> disarm(noted& request, bool& is_disarmed) {
  co_await request.disarm();
  is_disarmed = true;
}

}  // namespace

TEST_CASE("10.2 a request is in flight until a completion has no F_MORE", "[10.2]") {
  scene here;
  noted request{here.source};
  CHECK(request.arm());
  CHECK(request.is_armed());
  const ::io_uring_sqe sqe = here.kernel.take();
  here.kernel.answer(sqe, 1, cqe_more);
  UNSCOPED_INFO("IORING_CQE_F_MORE: more will follow");
  CHECK(request.is_armed());
  here.kernel.answer(sqe, -ECONNABORTED, cqe_more);
  UNSCOPED_INFO("an error with IORING_CQE_F_MORE: more will follow all the same");
  CHECK(request.is_armed());
  constexpr std::uint32_t in_buffer_7 = IORING_CQE_F_BUFFER | 7U << IORING_CQE_BUFFER_SHIFT;
  here.kernel.answer(sqe, 2, cqe_more | in_buffer_7);
  UNSCOPED_INFO("flags are bits: IORING_CQE_F_MORE stands beside others, and more will follow");
  CHECK(request.is_armed());
  here.kernel.answer(sqe, 3, in_buffer_7);
  UNSCOPED_INFO("no IORING_CQE_F_MORE: that was the last, although it is no error");
  CHECK_FALSE(request.is_armed());
  CHECK(here.context.in_flight() == 0);
}

TEST_CASE("10.2 a request that is in flight is not armed beside itself", "[10.2]") {
  scene here;
  noted request{here.source};
  CHECK(request.arm());
  const ::io_uring_sqe sqe = here.kernel.take();
  {
    INFO("two requests are in flight: each client would be accepted by either");
    CHECK(request.arm());
    CHECK(here.kernel.waiting() == 0);
  }
  here.kernel.answer(sqe, 1);
  CHECK(request.arm());
  UNSCOPED_INFO("it has ended, and was not armed again");
  REQUIRE(here.kernel.waiting() == 1);
  here.kernel.answer(here.kernel.take(), 2);
}

TEST_CASE("10.2 a canceled source refuses, and so does a queue that stops", "[10.2]") {
  scene here;
  noted request{here.source};
  here.context.stop();
  UNSCOPED_INFO("the queue is stopping: it would cancel the request at once");
  CHECK_FALSE(request.arm());
  CHECK(here.kernel.waiting() == 0);

  scene there;
  noted other{there.source};
  there.source.cancel();
  UNSCOPED_INFO("the source was canceled: start() says so, and nothing is in flight");
  CHECK_FALSE(other.arm());
  CHECK_FALSE(other.is_armed());
  CHECK(there.kernel.waiting() == 0);
}

TEST_CASE("10.2 a request that is in flight stays so while the queue stops", "[10.2]") {
  scene here;
  noted request{here.source};
  CHECK(request.arm());
  const ::io_uring_sqe sqe = here.kernel.take();
  here.context.stop();
  UNSCOPED_INFO("its last completions are still to come: do not forget it");
  CHECK(request.arm());
  here.kernel.turn({{sqe.user_data, 1, cqe_more}, {sqe.user_data, -ECANCELED}});
  CHECK(request.results == std::vector<std::int32_t>{1, -ECANCELED});
  CHECK_FALSE(request.arm());
}

TEST_CASE("10.2 a request that is in flight stays so when its source is canceled", "[10.2]") {
  scene here;
  noted request{here.source};
  CHECK(request.arm());
  const ::io_uring_sqe sqe = here.kernel.take();
  here.source.cancel();
  const ::io_uring_sqe cancel = here.kernel.take();
  UNSCOPED_INFO("its last completions are still to come: do not forget it");
  CHECK(request.arm());
  here.kernel.turn({{cancel.user_data, 0}, {sqe.user_data, -ECANCELED}});
  CHECK_FALSE(request.arm());
}

TEST_CASE("10.3 a request is asked to end by a cancel of its own, once", "[10.3]") {
  scene here;
  noted request{here.source};
  CHECK(request.arm());
  const ::io_uring_sqe sqe = here.kernel.take();
  request.ask_to_end();
  UNSCOPED_INFO("it was asked to end, and the request goes on until its own completion");
  REQUIRE(request.is_armed());
  REQUIRE(here.kernel.waiting() == 1);
  const ::io_uring_sqe cancel = here.kernel.take();
  CHECK(cancel.opcode == IORING_OP_ASYNC_CANCEL);
  UNSCOPED_INFO("the kernel finds the request by the address in its user_data");
  CHECK(cancel.addr == sqe.user_data);
  UNSCOPED_INFO("with other flags it would end other requests, too");
  CHECK(cancel.cancel_flags == 0);
  UNSCOPED_INFO(
      "no operation needs its answer (start_unheard): only the request's own completion counts");
  CHECK(cancel.user_data != sqe.user_data);
  request.ask_to_end();
  UNSCOPED_INFO("it was asked already: one cancel is enough");
  CHECK(here.kernel.waiting() == 0);
  CHECK(request.arm());
  request.ask_to_end();
  UNSCOPED_INFO("ensure_armed() forgets that the request which is in flight was asked to end");
  CHECK(here.kernel.waiting() == 0);
  here.kernel.answer(cancel, 0);
  UNSCOPED_INFO("the cancel has been answered, and the request goes on until its own completion");
  CHECK(request.is_armed());
  here.kernel.answer(sqe, -ECANCELED);
  CHECK(request.results == std::vector<std::int32_t>{-ECANCELED});
}

TEST_CASE("10.3 a request that is not in flight is not asked", "[10.3]") {
  scene here;
  noted request{here.source};
  request.ask_to_end();
  CHECK(here.kernel.waiting() == 0);
  CHECK(request.arm());
  here.kernel.answer(here.kernel.take(), 1);
  request.ask_to_end();
  UNSCOPED_INFO("it has ended by itself: there is nothing to cancel");
  CHECK(here.kernel.waiting() == 0);
}

TEST_CASE("10.3 a request that was armed again can be asked again", "[10.3]") {
  scene here;
  noted request{here.source};
  for (int round = 0; round < 2; ++round) {
    CHECK(request.arm());
    const ::io_uring_sqe sqe = here.kernel.take();
    request.ask_to_end();
    UNSCOPED_INFO("an earlier request was asked to end, but not this one");
    REQUIRE(here.kernel.waiting() == 1);
    const ::io_uring_sqe cancel = here.kernel.take();
    here.kernel.turn({{cancel.user_data, 0}, {sqe.user_data, -ECANCELED}});
  }
}

TEST_CASE("10.3 disarm() returns after the final completion, whatever comes before", "[10.3]") {
  scene here;
  noted request{here.source};
  CHECK(request.arm());
  const ::io_uring_sqe sqe = here.kernel.take();
  bool is_disarmed = false;
  here.context.spawn(disarm(request, is_disarmed));
  UNSCOPED_INFO("nobody asked the request to end: it may go on forever");
  REQUIRE(here.kernel.waiting() == 1);
  const ::io_uring_sqe cancel = here.kernel.take();
  here.kernel.turn({{cancel.user_data, 0}, {sqe.user_data, 1, cqe_more}});
  UNSCOPED_INFO("the request is in flight: the kernel has its address");
  CHECK_FALSE(is_disarmed);
  here.kernel.answer(sqe, -ECANCELED);
  UNSCOPED_INFO("the final completion has come, and nobody was resumed");
  CHECK(is_disarmed);
}

TEST_CASE("10.3 disarm() of a request that is not in flight returns at once", "[10.3]") {
  scene here;
  noted request{here.source};
  bool is_disarmed = false;
  here.context.spawn(disarm(request, is_disarmed));
  UNSCOPED_INFO("nothing is in flight, so nothing will ever resume it");
  CHECK(is_disarmed);
  CHECK(here.kernel.waiting() == 0);
}

TEST_CASE("10.3 disarm() of a request that was asked already waits, and does not ask again",
          "[10.3]") {
  scene here;
  noted request{here.source};
  CHECK(request.arm());
  const ::io_uring_sqe sqe = here.kernel.take();
  request.ask_to_end();
  const ::io_uring_sqe cancel = here.kernel.take();
  bool is_disarmed = false;
  here.context.spawn(disarm(request, is_disarmed));
  CHECK(here.kernel.waiting() == 0);
  CHECK_FALSE(is_disarmed);
  // It has ended by itself before the kernel has seen the cancel.
  here.kernel.turn({{sqe.user_data, 7}, {cancel.user_data, -ENOENT}});
  CHECK(is_disarmed);
}
