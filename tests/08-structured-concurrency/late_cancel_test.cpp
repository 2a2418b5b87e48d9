// SPDX-License-Identifier: MIT
// Task 08.3: no operation needs a cancel's completion. It may come when the frame has gone, and
// another operation lives at the address that the cancel has named.
#include <liburing.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>

#include "cancel_source.hpp"
#include "counted.hpp"
#include "io_context.hpp"
#include "io_operation.hpp"
#include "manual_ring.hpp"
#include "operations.hpp"
#include "ring_modes.hpp"
#include "silent_socket.hpp"
#include "task.hpp"

using course_test::counted;
using course_test::manual_ring;
using course_test::silent_socket;
using uring::cancel_source;
using uring::io_context;
using uring::io_handle;
using uring::task;

namespace {

struct listener final : uring::io_operation {
  listener()
      : io_operation{[](io_operation& self, const uring::completion& done) {
          auto& hears = static_cast<listener&>(self);
          ++hears.heard;
          hears.res = done.res;
        }} {}

  int heard = 0;
  std::int32_t res = 0;
};

// When it completes, it cancels.
struct canceling final : uring::io_operation {
  explicit canceling(cancel_source& what)
      : io_operation{[](io_operation& self, const uring::completion&) {
          auto& completed = static_cast<canceling&>(self);
          try {
            completed.source.cancel();
          } catch (...) {  // for the test, when nothing is in flight
            completed.failure = std::current_exception();
          }
          completed.is_done = true;
        }},
        source{what} {}

  cancel_source& source;
  bool is_done = false;
  std::exception_ptr failure;
};

constexpr auto nop = [](::io_uring_sqe& sqe) { ::io_uring_prep_nop(&sqe); };

// A recv of one byte into a byte that is nobody's.
auto recv_from(int fd) {
  return [fd](::io_uring_sqe& sqe) {
    static char byte;
    ::io_uring_prep_recv(&sqe, fd, &byte, 1, 0);
  };
}

task<> receive(cancel_source& source, int& error, counted) {
  std::array<std::byte, 8> buffer;
  const uring::io_result received = co_await uring::recv_op(source, 99, buffer);
  error = received.error();
}

void turn_until(uring::io_queue& queue, const listener& heard) {
  while (heard.heard == 0) queue.turn();
}

}  // namespace

TEST_CASE("08.3 a cancel's completion that comes after the frame has gone does no harm", "[08.3]") {
  for (const std::int32_t answer : {0, -ENOENT, -EALREADY}) {
    io_context context;
    manual_ring kernel{context};
    cancel_source source{context};
    int error = 0;
    context.spawn(receive(source, error, {}));
    const ::io_uring_sqe request = kernel.take();
    source.cancel();
    UNSCOPED_INFO("cancel() must start a request for each operation in flight");
    REQUIRE(kernel.waiting() == 1);
    const ::io_uring_sqe cancel = kernel.take();
    UNSCOPED_INFO("its target is named by user_data, the address of the io_operation");
    CHECK(cancel.addr == request.user_data);
    UNSCOPED_INFO("flags such as IORING_ASYNC_CANCEL_ANY reach further than this one target");
    CHECK(cancel.cancel_flags == 0);
    UNSCOPED_INFO(
        "the cancel has the user_data of its target: its completion would be taken for the "
        "target's. start_unheard() gives it to nobody");
    REQUIRE(cancel.user_data != request.user_data);
    kernel.answer(request, -ECANCELED);
    CHECK(error == ECANCELED);
    UNSCOPED_INFO("the frame waits for the completion of the cancel, which it does not need");
    CHECK(counted::live() == 0);
    CHECK(context.in_flight() == 1);
    kernel.answer(cancel, answer);
    CHECK(context.in_flight() == 0);
  }
}

TEST_CASE("08.3 after -EALREADY the target is asked again, until it has ended", "[08.3]") {
  io_context context;
  manual_ring kernel{context};
  cancel_source source{context};
  int error = 0;
  context.spawn(receive(source, error, {}));
  const ::io_uring_sqe request = kernel.take();
  source.cancel();
  for (int round = 0; round < 3; ++round) {
    const ::io_uring_sqe cancel = kernel.take();
    REQUIRE(cancel.opcode == IORING_OP_ASYNC_CANCEL);
    CHECK(cancel.addr == request.user_data);
    kernel.answer(cancel, -EALREADY);
    UNSCOPED_INFO(
        "the cancel came while a worker of the kernel laid its request down to wait: it ended "
        "nothing, and no cancel follows. An operation stays in operations_ until it completes: to "
        "ask it does not take it out");
    REQUIRE(kernel.waiting() == 1);
    const ::io_uring_sqe pause = kernel.take();
    UNSCOPED_INFO("asked again at once, a worker that is at work would be asked without end");
    REQUIRE(pause.opcode == IORING_OP_TIMEOUT);
    kernel.answer(pause, -ETIME);
  }
  const ::io_uring_sqe last = kernel.take();
  kernel.turn({{last.user_data, 0}, {request.user_data, -ECANCELED}});
  CHECK(error == ECANCELED);
  UNSCOPED_INFO("an operation that has ended needs no further cancel, nor a timer");
  CHECK(kernel.waiting() == 0);
  CHECK(context.in_flight() == 0);
}

TEST_CASE("08.3 a cancel's late completion does not reach a new operation at the same address",
          "[08.3]") {
  for (const std::int32_t answer : {0, -ENOENT, -EALREADY}) {
    io_context context;
    manual_ring kernel{context};
    cancel_source source{context};
    cancel_source another{context};
    std::optional<listener> place;
    place.emplace();
    REQUIRE(io_handle{source}.start(*place, nop));
    const ::io_uring_sqe first = kernel.take();
    source.cancel();
    REQUIRE(kernel.waiting() == 1);
    const ::io_uring_sqe cancel = kernel.take();
    kernel.answer(first, -ECANCELED);
    CHECK(place->heard == 1);
    place.reset();
    place.emplace();
    REQUIRE(io_handle{another}.start(*place, nop));
    const ::io_uring_sqe second = kernel.take();
    REQUIRE(second.user_data == first.user_data);
    kernel.answer(cancel, answer);
    UNSCOPED_INFO("the completion of a cancel was delivered to an operation");
    CHECK(place->heard == 0);
    CHECK(context.in_flight() == 1);
    kernel.answer(second, 4);
    CHECK(place->heard == 1);
    CHECK(place->res == 4);
  }
}

// The cancel stands in the queue before any request that could reuse the address: when the kernel
// looks for its target, the second operation is not there yet.
TEST_CASE("08.3 a late cancel does not end a new operation at the same address", "[08.3]") {
  for (const uring::ring_options& options : course_test::all_rings) {
    for (int round = 0; round < 50; ++round) {
      io_context context{options};
      const silent_socket ready;
      const silent_socket silent;
      cancel_source source{context};
      cancel_source another{context};
      canceling first_of_all{source};
      std::optional<listener> place;
      ready.say("x");
      context.start(first_of_all, nop);
      place.emplace();
      REQUIRE(io_handle{source}.start(*place, recv_from(ready.fd())));
      turn_until(context, *place);
      while (!first_of_all.is_done) context.turn();
      if (first_of_all.failure != nullptr) std::rethrow_exception(first_of_all.failure);
      CHECK(place->res == 1);
      place.reset();
      place.emplace();
      REQUIRE(io_handle{another}.start(*place, recv_from(silent.fd())));
      listener behind_them;
      context.start(behind_them, nop);
      turn_until(context, behind_them);
      UNSCOPED_INFO("a cancel was submitted after the request that it must not find");
      REQUIRE(place->heard == 0);
      silent.say("x");
      turn_until(context, *place);
      REQUIRE(place->res == 1);
    }
  }
}
