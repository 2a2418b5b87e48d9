// SPDX-License-Identifier: MIT
// Task 08.4: a request and the timeout that is linked to it.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <limits>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cancel_source.hpp"
#include "counted.hpp"
#include "deadline.hpp"
#include "operations.hpp"
#include "ring_modes.hpp"
#include "silent_socket.hpp"
#include "turns.hpp"
#include "when_all.hpp"

using namespace std::chrono_literals;
using course_test::cancel_after;
using course_test::counted;
using course_test::pass_turns;
using course_test::silent_socket;
using uring::cancel_source;
using uring::io_context;
using uring::io_result;
using uring::task;

namespace {

using clock_type = std::chrono::steady_clock;

struct timed_receipt {
  int error = -1;
  std::size_t bytes = 0;
  std::size_t in_flight = 0;
  std::chrono::milliseconds took{};
};

timed_receipt describe(const io_context& context, const io_result& result,
                       const clock_type::time_point& began) {
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(clock_type::now() - began);
  return {result.error(), result ? result.count() : 0, context.in_flight(), took};
}

task<timed_receipt> receive(io_context& context, int fd, std::chrono::nanoseconds at_most,
                            counted) {
  const auto began = clock_type::now();
  std::array<std::byte, 16> buffer;
  const io_result received =
      co_await uring::with_deadline(uring::recv_op(context, fd, buffer), at_most);
  co_return describe(context, received, began);
}

task<timed_receipt> receive(io_context& context, int fd, std::chrono::nanoseconds at_most,
                            cancel_source& source, counted) {
  const auto began = clock_type::now();
  std::array<std::byte, 16> buffer;
  const io_result received =
      co_await uring::with_deadline(uring::recv_op(source, fd, buffer), at_most);
  co_return describe(context, received, began);
}

constexpr const char* not_canceled =
    "0: the cancel did not reach the request, which went on until the test shut its socket. Start "
    "it by request_.io.start(): the queue's own start() tells no source. ETIME: the deadline fired";

}  // namespace

TEST_CASE("08.4 a recv that nothing comes for ends with ETIME", "[08.4]") {
  for (const uring::ring_options& options : course_test::all_rings) {
    io_context context{options};
    const silent_socket silent;
    const timed_receipt ended = context.run(receive(context, silent.fd(), 30ms, {}));
    UNSCOPED_INFO(
        "a result of 0 means that no deadline ended it, and the test had to shut its socket: was "
        "the timeout linked? ECANCELED is the request's own result; the timeout's completion says "
        "why");
    REQUIRE(ended.error == ETIME);
    UNSCOPED_INFO("the deadline ended it before its time");
    CHECK(ended.took >= 29ms);
    UNSCOPED_INFO("two requests were submitted: the frame goes on when both have completed");
    CHECK(ended.in_flight == 0);
    CHECK(counted::live() == 0);
  }
}

TEST_CASE("08.4 bytes that come in time are received, and the timer ends with them", "[08.4]") {
  for (const uring::ring_options& options : course_test::all_rings) {
    io_context context{options};
    const silent_socket silent;
    silent.say("news");
    const timed_receipt ended = context.run(receive(context, silent.fd(), 60s, {}));
    CHECK(ended.error == 0);
    CHECK(ended.bytes == 4);
    UNSCOPED_INFO("the timeout's completion must have come: the kernel has its address");
    CHECK(ended.in_flight == 0);
  }
}

TEST_CASE("08.4 a request that fails says so, whatever its deadline", "[08.4]") {
  io_context context;
  const timed_receipt ended = context.run(receive(context, -1, 60s, {}));
  UNSCOPED_INFO("the result is the request's own, unless it was ended early");
  CHECK(ended.error == EBADF);
  CHECK(ended.in_flight == 0);
}

TEST_CASE("08.4 a deadline of nothing, or less, has passed", "[08.4]") {
  for (const std::chrono::nanoseconds at_most :
       {std::chrono::nanoseconds{0}, std::chrono::nanoseconds{-5}, std::chrono::nanoseconds{1}}) {
    io_context context;
    const silent_socket silent;
    INFO("a deadline of " << at_most.count() << " ns");
    CHECK(context.run(receive(context, silent.fd(), at_most, {})).error == ETIME);
  }
}

TEST_CASE("08.4 a deadline in the far future does not fire", "[08.4]") {
  io_context context;
  const silent_socket silent;
  cancel_source source{context};
  cancel_source unused{context};
  const auto ended = context.run(uring::when_all(
      unused, receive(context, silent.fd(), std::chrono::nanoseconds::max(), source, {}),
      cancel_after(context, 3, source)));
  UNSCOPED_INFO(not_canceled);
  CHECK(std::get<0>(ended).error == ECANCELED);
}

TEST_CASE("08.4 ETIME says that the deadline ended it, ECANCELED that a source did", "[08.4]") {
  io_context context;
  const silent_socket silent;
  cancel_source source{context};
  cancel_source unused{context};
  const auto canceled = context.run(uring::when_all(
      unused, receive(context, silent.fd(), 60s, source, {}), cancel_after(context, 2, source)));
  UNSCOPED_INFO(not_canceled);
  REQUIRE(std::get<0>(canceled).error == ECANCELED);
  CHECK(std::get<0>(canceled).in_flight == 0);

  cancel_source patient{context};
  const timed_receipt late = context.run(receive(context, silent.fd(), 20ms, patient, {}));
  UNSCOPED_INFO("the deadline ended it");
  CHECK(late.error == ETIME);
  CHECK_FALSE(patient.is_canceled());
}

TEST_CASE("08.4 a request and its timeout are never cut apart by a full queue", "[08.4]") {
  struct check {
    // So that the queue has 0, 1, 2, 3 entries left when the pair wants in.
    static task<int> in_a_crowd(io_context& context, int fd, int round) {
      for (int i = 0; i < round % 4; ++i) context.spawn(pass_turns(context, 1));
      const timed_receipt ended = co_await receive(context, fd, 1ms, {});
      co_return ended.error;
    }
  };
  for (const unsigned entries : {2U, 4U}) {
    io_context context{{.sq_entries = entries, .cq_entries = 2 * entries}};
    const silent_socket silent;
    int in_time = 0;
    for (int round = 0; round < 200; ++round) {
      if (context.run(check::in_a_crowd(context, silent.fd(), round)) == ETIME) ++in_time;
    }
    UNSCOPED_INFO(
        "a timeout that is submitted alone has no request to end: reserve() both places before the "
        "first is taken");
    CHECK(in_time == 200);
  }
}

TEST_CASE("08.4 a pair waits for room however late the kernel's own thread is", "[08.4]") {
  struct check {
    static task<int> alone_and_in_pairs(io_context& context) {
      int done = 0;
      for (int i = 0; i < 25; ++i) {
        context.spawn(nop(context));  // one of the two places is taken
        const io_result ended = co_await uring::with_deadline(uring::nop_op(context), 10s);
        if (ended) ++done;
      }
      co_return done;
    }
    static task<> nop(io_context& context) {
      const io_result turned = co_await uring::nop_op(context);
      turned.or_throw("nop");
    }
  };
  std::array<std::jthread, 8> busy;  // it has to wait for a processor
  for (std::jthread& each : busy) {
    each = std::jthread{[](const std::stop_token& enough) {
      while (!enough.stop_requested()) continue;
    }};
  }
  io_context context{{.mode = uring::ring_mode::sqpoll, .sq_entries = 2, .cq_entries = 4}};
  CHECK(context.run(check::alone_and_in_pairs(context)) == 25);
}

TEST_CASE("08.4 a thousand deadlines run at the same time", "[08.4]") {
  for (const uring::ring_options& options : course_test::all_rings) {
    io_context context{options};
    const silent_socket silent;
    cancel_source unused{context};
    std::vector<task<timed_receipt>> many;
    many.reserve(1000);
    for (int i = 0; i < 1000; ++i) many.push_back(receive(context, silent.fd(), 20ms, {}));
    int in_time = 0;
    for (const timed_receipt& each : context.run(uring::when_all(unused, std::move(many)))) {
      if (each.error == ETIME) ++in_time;
    }
    REQUIRE(in_time == 1000);
    CHECK(counted::live() == 0);
  }
}
