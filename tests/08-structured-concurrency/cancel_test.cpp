// SPDX-License-Identifier: MIT
// Task 08.3: a request in flight is asked to end, and its frame goes on when all has been answered.
#include <poll.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "bounded_io.hpp"
#include "counted.hpp"
#include "listen.hpp"
#include "operations.hpp"
#include "ring_modes.hpp"
#include "silent_socket.hpp"
#include "turns.hpp"
#include "when_all.hpp"
#include "when_any.hpp"

using namespace std::chrono_literals;
using course_test::cancel_after;
using course_test::counted;
using course_test::silent_socket;
using uring::cancel_source;
using uring::cancelable;
using uring::child_of;
using uring::io_context;
using uring::io_result;
using uring::task;

namespace {

// How one request ended: its result, and what was in flight when its frame went on.
struct ending {
  int error = -1;
  std::size_t in_flight = 0;
};

task<ending> receive(io_context& context, int fd, cancel_source& source, counted) {
  std::array<std::byte, 16> buffer;
  const io_result received = co_await cancelable(uring::recv_op(context, fd, buffer), source);
  co_return ending{received.error(), context.in_flight()};
}

template <typename Request>
task<int> error_of(Request request, cancel_source& source, counted) {
  const io_result result = co_await cancelable(request, source);
  co_return result.error();
}

}  // namespace

TEST_CASE("08.3 a recv that nothing comes for ends with ECANCELED", "[08.3]") {
  for (const uring::ring_options& options : course_test::all_rings) {
    io_context context{options};
    const silent_socket silent;
    cancel_source source;
    cancel_source unused;
    const auto ended = context.run(uring::when_all(
        unused, receive(context, silent.fd(), source, {}), cancel_after(context, 2, source)));
    UNSCOPED_INFO(
        "the frame went on while the answer to the cancel was on its way, or the recv's own: the "
        "kernel has an address in it");
    REQUIRE(std::get<0>(ended).in_flight == 0);
    UNSCOPED_INFO("no error: nobody asked the recv to end, and the test had to shut its socket");
    REQUIRE(std::get<0>(ended).error == ECANCELED);
    CHECK(counted::live() == 0);
  }
}

TEST_CASE("08.3 a cancel that comes before the request was submitted ends it, too", "[08.3]") {
  io_context context;
  const silent_socket silent;
  cancel_source source;
  cancel_source unused;
  UNSCOPED_INFO("both stand in the queue, in this order: the recv, then the cancel");
  const auto ended = context.run(uring::when_all(unused, receive(context, silent.fd(), source, {}),
                                                 cancel_after(context, 0, source)));
  CHECK(std::get<0>(ended).error == ECANCELED);
}

TEST_CASE("08.3 what had come by then is received, not lost", "[08.3]") {
  io_context context;
  const silent_socket silent;
  silent.say("news");
  cancel_source source;
  cancel_source unused;
  const auto ended = context.run(uring::when_all(unused, receive(context, silent.fd(), source, {}),
                                                 cancel_after(context, 0, source)));
  UNSCOPED_INFO("the cancel found nothing to end (-ENOENT); the recv's own result counts");
  CHECK(std::get<0>(ended).error == 0);
  CHECK(std::get<0>(ended).in_flight == 0);
}

TEST_CASE("08 what is awaited after the cancel ends at once, and submits nothing", "[08]") {
  struct check {
    static task<> too_late(io_context& context, int fd) {
      cancel_source source;
      source.cancel();
      const ending ended = co_await receive(context, fd, source, {});
      UNSCOPED_INFO("a canceled source stays canceled");
      CHECK(ended.error == ECANCELED);
      CHECK(context.in_flight() == 0);
    }
  };
  io_context context;
  const silent_socket silent;
  context.run(check::too_late(context, silent.fd()));
}

TEST_CASE("08.3 one cancel ends every kind of request that waits", "[08.3]") {
  io_context context{course_test::tiny_rings};
  const silent_socket silent;
  const common::unique_fd listener = common::listen_on("127.0.0.1", 0);
  cancel_source source;
  std::vector<task<int>> waiting;
  std::array<std::byte, 8> buffer{};
  waiting.push_back(error_of(uring::accept_op(context, listener.get()), source, {}));
  waiting.push_back(error_of(uring::timeout_op(context, 60s), source, {}));
  waiting.push_back(error_of(uring::poll_op(context, silent.fd(), POLLIN), source, {}));
  for (int i = 0; i < 20; ++i) {
    waiting.push_back(error_of(uring::recv_op(context, silent.fd(), buffer), source, {}));
  }
  cancel_source unused;
  context.spawn(cancel_after(context, 3, source));
  const std::vector<int> errors = context.run(uring::when_all(unused, std::move(waiting)));
  UNSCOPED_INFO("one was not asked to end: cancel() goes through the whole list");
  CHECK(errors == std::vector<int>(errors.size(), ECANCELED));
  CHECK(counted::live() == 0);
}

TEST_CASE("08.3 a cancel reaches what is below it in the tree, and nothing above", "[08.3]") {
  io_context context;
  const silent_socket silent;
  cancel_source above;
  cancel_source middle{child_of{above}};
  cancel_source below{child_of{middle}};
  cancel_source unused;
  auto ended = context.run(uring::when_all(unused, receive(context, silent.fd(), below, {}),
                                           cancel_after(context, 1, middle)));
  CHECK(std::get<0>(ended).error == ECANCELED);
  CHECK(below.is_canceled());
  UNSCOPED_INFO("a child's end is not its parent's");
  CHECK_FALSE(above.is_canceled());
  above.cancel();
  UNSCOPED_INFO("who is born below a canceled source is canceled");
  CHECK(cancel_source{child_of{above}}.is_canceled());
}

TEST_CASE("08.3 a second cancel asks nobody twice", "[08.3]") {
  struct check {
    static task<> cancel_twice(io_context& context, cancel_source& source) {
      source.cancel();
      const std::size_t in_flight = context.in_flight();
      source.cancel();
      CHECK(context.in_flight() == in_flight);
      co_return;
    }
  };
  io_context context;
  const silent_socket silent;
  cancel_source source;
  cancel_source unused;
  const auto ended = context.run(uring::when_all(unused, receive(context, silent.fd(), source, {}),
                                                 check::cancel_twice(context, source)));
  CHECK(std::get<0>(ended).error == ECANCELED);
}

TEST_CASE("08.3 stop() of the context ends what a source was given to", "[08.3]") {
  struct check {
    static task<> stop(io_context& context) {
      context.stop();
      co_return;
    }
  };
  io_context context;
  const silent_socket silent;
  cancel_source source;
  cancel_source unused;
  const auto ended = context.run(
      uring::when_all(unused, receive(context, silent.fd(), source, {}), check::stop(context)));
  CHECK(std::get<0>(ended).error == ECANCELED);
  CHECK(counted::live() == 0);
}

TEST_CASE("08.3 when_any returns when its losers' requests are answered", "[08.3]") {
  struct check {
    static task<ending> late(io_context& context) {
      const io_result turned = co_await uring::nop_op(context);
      co_return ending{turned.error(), 0};
    }
    static task<> run(io_context& context, int fd) {
      cancel_source losers;
      const auto first =
          co_await uring::when_any(losers, receive(context, fd, losers, {}), late(context));
      CHECK(first.index == 1);
      UNSCOPED_INFO("a loser's recv is in flight: the kernel may still write to its buffer");
      CHECK(context.in_flight() == 0);
      CHECK(counted::live() == 0);
    }
  };
  io_context context;
  const silent_socket silent;
  context.run(check::run(context, silent.fd()));
}
