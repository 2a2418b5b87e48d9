// SPDX-License-Identifier: MIT
// Task 08.3: a request in flight is asked to end, and its frame goes on when the request has ended.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cancel_source.hpp"
#include "counted.hpp"
#include "deadline.hpp"
#include "idle_echo.hpp"
#include "listen.hpp"
#include "operations.hpp"
#include "ring_modes.hpp"
#include "scope.hpp"
#include "scripted_ring.hpp"
#include "silent_socket.hpp"
#include "socket_pair.hpp"
#include "turns.hpp"
#include "unique_fd.hpp"
#include "when_all.hpp"
#include "when_any.hpp"

using namespace std::chrono_literals;
using course_test::cancel_after;
using course_test::counted;
using course_test::silent_socket;
using uring::cancel_source;
using uring::child_of;
using uring::io_context;
using uring::io_result;
using uring::task;

namespace {

// How one request ended: its result, and how much was in flight when its frame went on. That may be
// the cancel, whose own completion the frame does not need.
struct receipt {
  int error = -1;
  std::size_t in_flight = 0;
};

constexpr std::size_t at_most_the_cancel = 1;

task<receipt> receive(io_context& context, int fd, cancel_source& source, counted) {
  std::array<std::byte, 16> buffer;
  const io_result received = co_await uring::recv_op(source, fd, buffer);
  co_return receipt{received.error(), context.in_flight()};
}

template <typename Request>
task<int> error_of(Request request, counted) {
  const io_result result = co_await request;
  co_return result.error();
}

}  // namespace

TEST_CASE("08.3 a recv that nothing comes for ends with ECANCELED", "[08.3]") {
  for (const uring::ring_options& options : course_test::all_rings) {
    io_context context{options};
    const silent_socket silent;
    cancel_source source{context};
    cancel_source unused{context};
    const auto ended = [&] {
      INFO(
          "if it crashes here by \"nothing would tell how it ended\": the cancel has the flag "
          "IOSQE_CQE_SKIP_SUCCESS. start_unheard() waits for the cancel's completion: no flag");
      return context.run(uring::when_all(unused, receive(context, silent.fd(), source, {}),
                                         cancel_after(context, 2, source)));
    }();
    UNSCOPED_INFO(
        "there was no error: nobody asked the recv to end, and the test had to shut its socket. "
        "The cancel names its target by the user_data of the target: the address of the "
        "io_operation");
    REQUIRE(std::get<0>(ended).error == ECANCELED);
    UNSCOPED_INFO("the recv has not completed: the kernel has an address in the frame");
    REQUIRE(std::get<0>(ended).in_flight <= at_most_the_cancel);
    CHECK(counted::live() == 0);
  }
}

TEST_CASE("08.3 a cancel ends a request even if both are submitted together", "[08.3]") {
  io_context context;
  const silent_socket silent;
  cancel_source source{context};
  cancel_source unused{context};
  UNSCOPED_INFO("both stand in the queue, in this order: the recv, then the cancel");
  const auto ended = context.run(uring::when_all(unused, receive(context, silent.fd(), source, {}),
                                                 cancel_after(context, 0, source)));
  CHECK(std::get<0>(ended).error == ECANCELED);
}

TEST_CASE("08.3 bytes that came before the cancel are received", "[08.3]") {
  io_context context;
  const silent_socket silent;
  silent.say("news");
  cancel_source source{context};
  cancel_source unused{context};
  const auto ended = context.run(uring::when_all(unused, receive(context, silent.fd(), source, {}),
                                                 cancel_after(context, 0, source)));
  UNSCOPED_INFO("the cancel found nothing to end (-ENOENT); the recv's own result counts");
  CHECK(std::get<0>(ended).error == 0);
  CHECK(std::get<0>(ended).in_flight <= at_most_the_cancel);
}

TEST_CASE("08 a request that is awaited after the cancel ends at once, and submits nothing",
          "[08]") {
  struct check {
    static task<> too_late(io_context& context, int fd) {
      cancel_source source{context};
      source.cancel();
      const receipt ended = co_await receive(context, fd, source, {});
      UNSCOPED_INFO(
          "the result is 0, so the request was submitted. cancel() must leave a mark, "
          "is_canceled_");
      CHECK(ended.error == ECANCELED);
      CHECK(context.in_flight() == 0);
    }
  };
  io_context context;
  const silent_socket silent;
  context.run(check::too_late(context, silent.fd()));
}

TEST_CASE("08.3 one cancel ends every kind of request that waits", "[08.3]") {
  struct check {
    static task<std::vector<int>> all_errors(cancel_source& is_over, cancel_source& unused,
                                             std::vector<task<int>> waiting) {
      std::vector<int> errors = co_await uring::when_all(unused, std::move(waiting));
      is_over.cancel();
      co_return errors;
    }
    // So that the test ends even if a request was not canceled.
    static task<> stop_if_late(io_context& context, cancel_source& is_over) {
      const io_result ended = co_await uring::timeout_op(is_over, silent_socket::rescue_after());
      UNSCOPED_INFO("one was not asked to end: cancel() goes through the whole list");
      CHECK(ended.error() == ECANCELED);
      if (ended.error() == ETIME) context.stop();
    }
  };
  io_context context{course_test::tiny_rings};
  const silent_socket silent;
  const common::unique_fd listener = common::listen_on("127.0.0.1", 0);
  cancel_source source{context};
  std::vector<task<int>> waiting;
  std::array<std::byte, 8> buffer{};
  waiting.push_back(error_of(uring::accept_op(source, listener.get()), {}));
  waiting.push_back(error_of(uring::timeout_op(source, 60s), {}));
  waiting.push_back(error_of(uring::poll_op(source, silent.fd(), POLLIN), {}));
  for (int i = 0; i < 20; ++i) {
    waiting.push_back(error_of(uring::recv_op(source, silent.fd(), buffer), {}));
  }
  cancel_source unused{context};
  cancel_source is_over{context};
  context.spawn(cancel_after(context, 3, source));
  context.spawn(check::stop_if_late(context, is_over));
  const std::vector<int> errors =
      context.run(check::all_errors(is_over, unused, std::move(waiting)));
  UNSCOPED_INFO("one was not asked to end: cancel() goes through the whole list");
  CHECK(errors == std::vector<int>(errors.size(), ECANCELED));
  CHECK(counted::live() == 0);
}

TEST_CASE("08.3 a cancel reaches what is below it in the tree, and nothing above", "[08.3]") {
  io_context context;
  const silent_socket silent;
  cancel_source above{context};
  cancel_source middle{child_of{above}};
  cancel_source below{child_of{middle}};
  cancel_source unused{context};
  auto ended = context.run(uring::when_all(unused, receive(context, silent.fd(), below, {}),
                                           cancel_after(context, 1, middle)));
  UNSCOPED_INFO("a source below was not asked to end: the parent has to watch() it");
  CHECK(std::get<0>(ended).error == ECANCELED);
  CHECK(below.is_canceled());
  UNSCOPED_INFO("a child's end is not its parent's");
  CHECK_FALSE(above.is_canceled());
  above.cancel();
  UNSCOPED_INFO("a source that is made below a canceled one is canceled");
  CHECK(cancel_source{child_of{above}}.is_canceled());
}

TEST_CASE("08.3 a cancel leaves requests outside its source alone", "[08.3]") {
  struct check {
    static task<> cancel_and_then_say(io_context& context, cancel_source& source,
                                      const silent_socket& neighbor) {
      co_await course_test::pass_turns(context, 1);
      source.cancel();
      co_await course_test::pass_turns(context, 3);
      neighbor.say("x");
    }
  };
  io_context context;
  const silent_socket silent;
  const silent_socket neighbor;
  cancel_source source{context};
  cancel_source others{context};
  cancel_source unused{context};
  const auto ended =
      context.run(uring::when_all(unused, receive(context, silent.fd(), source, {}),
                                  receive(context, neighbor.fd(), others, {}),
                                  check::cancel_and_then_say(context, source, neighbor)));
  CHECK(std::get<0>(ended).error == ECANCELED);
  UNSCOPED_INFO(
      "the cancel ended a bystander: a request that was not started through this source. Name the "
      "target by its user_data; IORING_ASYNC_CANCEL_ANY means every request of the ring");
  CHECK(std::get<1>(ended).error == 0);
}

TEST_CASE("08.3 a second cancel submits nothing", "[08.3]") {
  struct check {
    static task<> cancel_twice(io_context& context, cancel_source& source) {
      source.cancel();
      const std::size_t in_flight = context.in_flight();
      source.cancel();
      UNSCOPED_INFO("a second cancel submitted a second request for the same target");
      CHECK(context.in_flight() == in_flight);
      co_return;
    }
  };
  io_context context;
  const silent_socket silent;
  cancel_source source{context};
  cancel_source unused{context};
  const auto ended = context.run(uring::when_all(unused, receive(context, silent.fd(), source, {}),
                                                 check::cancel_twice(context, source)));
  CHECK(std::get<0>(ended).error == ECANCELED);
}

TEST_CASE("08 stop() of the context ends a request that has a source", "[08]") {
  struct check {
    static task<> stop(io_context& context) {
      context.stop();
      co_return;
    }
  };
  io_context context;
  const silent_socket silent;
  cancel_source source{context};
  cancel_source unused{context};
  const auto ended = context.run(
      uring::when_all(unused, receive(context, silent.fd(), source, {}), check::stop(context)));
  CHECK(std::get<0>(ended).error == ECANCELED);
  CHECK(counted::live() == 0);
}

TEST_CASE("08.3 when_any returns when its losers' requests have completed", "[08.3]") {
  struct check {
    static task<receipt> late(io_context& context) {
      const io_result turned = co_await uring::nop_op(context);
      co_return receipt{turned.error(), 0};
    }
    static task<> run(io_context& context, int fd) {
      cancel_source losers{context};
      const auto first =
          co_await uring::when_any(losers, receive(context, fd, losers, {}), late(context));
      CHECK(first.index == 1);
      UNSCOPED_INFO("a loser's recv is in flight: the kernel may still write to its buffer");
      CHECK(context.in_flight() <= at_most_the_cancel);
      CHECK(counted::live() == 0);
    }
  };
  io_context context;
  const silent_socket silent;
  context.run(check::run(context, silent.fd()));
}

TEST_CASE("08 a ring that fails takes down sources with operations in flight", "[08]") {
  struct check {
    static task<> wait_below(io_context& context, cancel_source& above, int deadline_turns,
                             counted) {
      cancel_source own{child_of{above}};
      std::array<std::byte, 8> buffer;
      (void)co_await uring::with_deadline(uring::recv_op(own, 99, buffer), 60s);
      co_await course_test::pass_turns(context, deadline_turns);
    }
    static task<> body(io_context& context, uring::scope& tasks) {
      for (int i = 0; i < 3; ++i) tasks.spawn(wait_below(context, tasks.source(), i, {}));
      std::array<std::byte, 8> buffer;
      (void)co_await uring::recv_op(tasks.source(), 99, buffer);
    }
    static task<> run(io_context& context) {
      uring::scope tasks{context};
      co_await tasks.run(body(context, tasks));
    }
  };
  const course_test::scripted_ring kernel{
      [](const auto&) -> std::vector<course_test::scripted_answer> {
        throw std::runtime_error{"the ring has failed"};
      }};
  io_context context;
  context.spawn(check::run(context));
  UNSCOPED_INFO("frames go without a completion then, and their sources have to forget them");
  CHECK_THROWS_WITH(context.run(), "the ring has failed");
  CHECK(counted::live() == 0);
}

TEST_CASE("08 a ring that fails takes down a server that waits for a descriptor", "[08]") {
  const course_test::socket_pair sockets = course_test::unix_pair();
  int turns = 0;
  const course_test::scripted_ring kernel{[&](const std::vector<::io_uring_sqe>& submitted)
                                              -> std::vector<course_test::scripted_answer> {
    if (++turns > 1) throw std::runtime_error{"the ring has failed"};
    const auto accept = std::ranges::find(submitted, IORING_OP_ACCEPT, &::io_uring_sqe::opcode);
    REQUIRE(accept != submitted.end());
    return {{accept->user_data, -EMFILE}};
  }};
  io_context context;
  UNSCOPED_INFO(
      "the task that accepts waits with a source of the server: destroy the task before the "
      "source");
  CHECK_THROWS_WITH(
      context.run(uring::serve_idle_echo(context, common::unique_fd{::dup(sockets.ours.get())},
                                         sockets.ours.get(), 60s)),
      "the ring has failed");
  CHECK(turns > 1);
}
