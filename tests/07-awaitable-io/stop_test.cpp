// SPDX-License-Identifier: MIT
// What a context promises at its end: operations that hang by construction, stopped, abandoned by
// their ring, or never run at all. Nothing is left, and nothing is written to what is gone.
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "counted.hpp"
#include "ending_process.hpp"
#include "fd_scope.hpp"
#include "feature.hpp"
#include "file_operations.hpp"
#include "io_context.hpp"
#include "listen.hpp"
#include "manual_ring.hpp"
#include "noting_canceler.hpp"
#include "operations.hpp"
#include "path_operations.hpp"
#include "pipe_ends.hpp"
#include "refuse_calls.hpp"
#include "scope_exit.hpp"
#include "scripted_ring.hpp"
#include "socket_pair.hpp"
#include "watchdog.hpp"

using namespace std::chrono_literals;
using course_test::counted;
using course_test::manual_ring;
using course_test::noting_canceler;
using course_test::watchdog;
using uring::io_context;
using uring::io_request;
using uring::io_result;
using uring::ring_mode;
using uring::task;

namespace {

struct silence {
  course_test::socket_pair sockets = course_test::unix_pair();
  common::unique_fd listener = common::listen_on("127.0.0.1", 0);
  course_test::pipe_ends pipe = course_test::make_pipe();
  std::array<std::byte, 64> buffer{};
};

template <typename Prepare>
task<> hang(io_request<Prepare> request, int& canceled) {
  const counted frame;
  const io_result ended = co_await request;
  if (ended.error() == ECANCELED || ended.error() == EINTR) {
    ++canceled;
  } else {
    FAIL_CHECK("it completed with " << ended.error() << ", but there was nothing to complete it");
  }
}

// All of them wait in vain.
int spawn_all(io_context& context, silence& nothing, int& canceled) {
  const int socket = nothing.sockets.theirs.get();
  context.spawn(hang(uring::recv_op(context, socket, nothing.buffer), canceled));
  context.spawn(hang(uring::read_op(context, nothing.pipe.read.get(), nothing.buffer), canceled));
  context.spawn(hang(uring::accept_op(context, nothing.listener.get()), canceled));
  context.spawn(hang(uring::timeout_op(context, 1h), canceled));
  context.spawn(hang(uring::poll_op(context, socket, POLLIN), canceled));
  return 5;
}

task<> stop_after(io_context& context, std::chrono::milliseconds after) {
  (void)co_await uring::timeout_op(context, after);
  context.stop();
}

// Does not take the hint, a few times.
task<> try_again(io_context& context, silence& nothing, int& canceled, int times) {
  const counted frame;
  for (int i = 0; i < times; ++i) {
    const io_result received =
        co_await uring::recv_op(context, nothing.sockets.theirs.get(), nothing.buffer);
    if (received.error() == ECANCELED) ++canceled;
  }
}

task<> close_after_stop(io_context& context, int fd, int& result) {
  const io_result waited = co_await uring::timeout_op(context, 1h);
  if (waited.error() != ECANCELED) FAIL_CHECK("an hour has passed");
  const io_result closed = co_await uring::close_op(context, fd);
  result = closed.error();
}

task<> fail_now() {
  throw std::runtime_error{"failed at once"};
  co_return;
}

task<> wait_for_nothing() {
  co_await std::suspend_always{};
}

task<> receive_or_throw(io_context& context) {
  const counted frame;
  std::array<std::byte, 64> buffer;
  (void)(co_await uring::recv_op(context, course_test::socket_number, buffer)).or_throw("recv");
}

task<> receive_into_own_frame(io_context& context, int socket) {
  const counted frame;
  std::array<std::byte, 4096> buffer;
  (void)co_await uring::recv_op(context, socket, buffer);
}

// Asks the kernel for what chapter 08's source will ask it: to end one operation, by its address.
task<> cancel_soon(io_context& context, const noting_canceler& of) {
  (void)co_await uring::nop_op(context);
  const auto target = reinterpret_cast<std::uint64_t>(&of.in_flight.front());
  context.start_unheard(
      [target](::io_uring_sqe& sqe) { ::io_uring_prep_cancel64(&sqe, target, 0); });
}

task<> receive_through(uring::io_handle io, silence& nothing, int& error) {
  const io_result ended = co_await uring::recv_op(io, nothing.sockets.theirs.get(), nothing.buffer);
  error = ended.error();
}

}  // namespace

TEST_CASE("07 a stop ends operations that would wait forever") {
  const auto [mode, feature] = GENERATE(
      std::pair{ring_mode::plain, "ring"}, std::pair{ring_mode::coop, "coop_taskrun"},
      std::pair{ring_mode::defer, "defer_taskrun"}, std::pair{ring_mode::sqpoll, "sqpoll"});
  course_test::require_feature(feature);
  const watchdog deadline{5s, "a stop has to cancel whatever waits"};
  silence nothing;
  const course_test::fd_scope fds;
  int canceled = 0;
  {
    io_context context{{.mode = mode}};
    const int count = spawn_all(context, nothing, canceled);
    context.spawn(stop_after(context, 10ms));
    REQUIRE(counted::live() == count);
    context.run();
    CHECK(canceled == count);
    CHECK(context.in_flight() == 0);
  }
  CHECK(counted::live() == 0);
  CHECK(fds.leaked().empty());
}

TEST_CASE("07 after a stop an operation that starts to wait is canceled as well") {
  const watchdog deadline{5s, "a task that starts something new has to be canceled again"};
  silence nothing;
  int canceled = 0;
  io_context context;
  context.spawn(try_again(context, nothing, canceled, 50));
  context.spawn(stop_after(context, 1ms));
  context.run();
  CHECK(canceled == 50);
  CHECK(counted::live() == 0);
}

TEST_CASE("07 after a stop an operation that need not wait is done") {
  const watchdog deadline{5s, "a stop has to cancel whatever waits"};
  const int extra = ::dup(0);
  REQUIRE(extra >= 0);
  int result = -1;
  io_context context;
  context.spawn(close_after_stop(context, extra, result));
  context.spawn(stop_after(context, 1ms));
  context.run();
  CHECK(result == 0);
  CHECK(::close(extra) == -1);
}

TEST_CASE("07 an exception that escapes before the first turn stops the others too") {
  const watchdog deadline{5s, "look for what escaped before going to sleep"};
  silence nothing;
  int canceled = 0;
  io_context context;
  const int count = spawn_all(context, nothing, canceled);
  context.spawn(fail_now());
  CHECK_THROWS_WITH(context.run(), "failed at once");
  CHECK(canceled == count);
  CHECK(counted::live() == 0);
}

TEST_CASE("07 tasks that nobody has run end with their context") {
  const watchdog deadline{5s, "the destructor has to cancel whatever waits"};
  silence nothing;
  int canceled = 0;
  int count = 0;
  {
    io_context context;
    count = spawn_all(context, nothing, canceled);
    CHECK(counted::live() == count);
  }
  CHECK(counted::live() == 0);
  CHECK(canceled == count);
}

TEST_CASE("07 a canceled operation completes with ECANCELED, and only that one") {
  const watchdog deadline{5s, "the kernel is asked by the operation's address"};
  silence nothing;
  int error = 0;
  io_context context;
  noting_canceler canceler{context};
  context.spawn(receive_through(canceler, nothing, error));
  context.spawn(cancel_soon(context, canceler));
  context.run();
  CHECK(error == ECANCELED);
  CHECK(canceler.in_flight.empty());
  CHECK(context.in_flight() == 0);
  CHECK_FALSE(context.is_stopping());
}

TEST_CASE("07 nothing is written to a buffer whose context has ended") {
  const course_test::socket_pair sockets = course_test::unix_pair();
  {
    io_context context;
    context.spawn(receive_into_own_frame(context, sockets.theirs.get()));
  }
  REQUIRE(counted::live() == 0);
  REQUIRE(::send(sockets.ours.get(), "late", 4, MSG_NOSIGNAL) == 4);
  std::array<char, 16> taken{};
  UNSCOPED_INFO("the recv was still in flight, and has received into a frame that is gone");
  CHECK(::recv(sockets.theirs.get(), taken.data(), taken.size(), MSG_DONTWAIT) == 4);
}

TEST_CASE("07 a ring that fails ends every task before run throws") {
  std::string said = "nothing was thrown";
  const course_test::socket_pair sockets = course_test::unix_pair();
  std::jthread{[&] {
    io_context context;
    context.spawn(receive_into_own_frame(context, sockets.theirs.get()));
    context.spawn(stop_after(context, 1ms));
    course_test::refuse_io_uring_enter(EPERM);
    try {
      context.run();
    } catch (const std::system_error& refusal) {
      said = refusal.what();
    }
  }}.join();
  CHECK(said == "io_uring_enter: EPERM (Operation not permitted)");
  CHECK(counted::live() == 0);
}

TEST_CASE("07 if the ring fails first, run throws that, not what a task throws as it ends") {
  const watchdog deadline{5s, "a wait that fails once does not hinder the waits of the end"};
  std::vector<std::uint64_t> unanswered;  // in the turn that fails, the recv
  course_test::scripted_ring kernel{[&](const std::vector<::io_uring_sqe>& submitted) {
    std::vector<course_test::scripted_answer> answers;
    for (const std::uint64_t request : std::exchange(unanswered, {})) {
      answers.push_back({request, -ECANCELED});
    }
    for (const ::io_uring_sqe& request : submitted) unanswered.push_back(request.user_data);
    return answers;
  }};
  io_context context;
  context.spawn(receive_or_throw(context));
  kernel.fail_next_wait(ENOMEM);
  UNSCOPED_INFO("the recv was canceled because the ring had failed: report the ring's failure");
  CHECK_THROWS_WITH(context.run(), "io_uring_enter: ENOMEM (Cannot allocate memory)");
  CHECK(counted::live() == 0);
}

TEST_CASE("07 a request that does not end ends the process") {
  const course_test::ending_process child = course_test::run_to_its_end([] {
    course_test::scripted_ring kernel{[](const auto&) -> std::vector<course_test::scripted_answer> {
      throw std::runtime_error{"the ring has failed"};
    }};
    kernel.ignore_cancels(1'000'000);
    io_context context;
    context.spawn(receive_into_own_frame(context, course_test::socket_number));
    context.run();
  });
  UNSCOPED_INFO("the kernel may still write to a frame that would be destroyed");
  CHECK(child.status == course_test::killed_by(SIGABRT));
  CHECK_THAT(child.stderr_text, Catch::Matchers::ContainsSubstring("a request does not end"));
}

TEST_CASE("07 a context whose run() failed runs nothing more") {
  io_context context;
  context.spawn(wait_for_nothing());
  CHECK_THROWS_WITH(context.run(), Catch::Matchers::ContainsSubstring("every task waits"));
  CHECK_THROWS_WITH(context.spawn(wait_for_nothing()),
                    Catch::Matchers::ContainsSubstring("an earlier run() failed"));
}

TEST_CASE("07 completions in any order leave no frame and touch none that is gone") {
  constexpr int tasks = 40;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    silence nothing;
    int canceled = 0;
    io_context context;
    manual_ring kernel{context};
    std::vector<::io_uring_sqe> open;
    for (int i = 0; i < tasks; ++i) context.spawn(try_again(context, nothing, canceled, 3));
    unsigned random = seed;
    for (int answered = 0; answered < 3 * tasks; ++answered) {
      while (kernel.waiting() > 0) open.push_back(kernel.take());
      random = random * 1'103'515'245U + 12345U;
      const auto chosen = static_cast<std::ptrdiff_t>((random >> 8) % open.size());
      const ::io_uring_sqe request = open[static_cast<std::size_t>(chosen)];
      open.erase(open.begin() + chosen);
      kernel.answer(request, (random & 1) != 0 ? -ECANCELED : 0);
    }
    CHECK(counted::live() == 0);
    CHECK(context.in_flight() == 0);
  }
}

TEST_CASE("07 scope_exit acts whatever way its scope is left") {
  std::string order;
  const auto leave_by_throwing = [&order] {
    const uring::scope_exit first{[&order] { order += "first "; }};
    const uring::scope_exit second{[&order] { order += "second "; }};
    order += "body ";
    throw std::runtime_error{"out"};
  };
  CHECK_THROWS(leave_by_throwing());
  CHECK(order == "body second first ");
}
