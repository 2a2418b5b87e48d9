// SPDX-License-Identifier: MIT
// Task 07.4: the loop, which runs until every task has ended.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <coroutine>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "counted.hpp"
#include "io_context.hpp"
#include "manual_ring.hpp"
#include "operations.hpp"
#include "process_counts.hpp"
#include "socket_pair.hpp"
#include "watchdog.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using course_test::counted;
using course_test::watchdog;
using uring::io_context;
using uring::io_result;
using uring::task;

namespace {

constexpr uring::ring_options tiny{.sq_entries = 4, .cq_entries = 4};

task<> await_nops(io_context& context, int count, int& done) {
  for (int i = 0; i < count; ++i) {
    const io_result nop = co_await uring::nop_op(context);
    if (nop) ++done;
  }
}

task<> note_twice(io_context& context, std::string name, std::string& notes) {
  notes += name + "1 ";
  (void)co_await uring::nop_op(context);
  notes += name + "2 ";
}

task<> wait_for_nobody() {
  const counted frame;
  co_await std::suspend_always{};
}

task<int> answer_after_a_nop(io_context& context) {
  (void)co_await uring::nop_op(context);
  co_return 42;
}

task<> fail_after_a_nop(io_context& context) {
  (void)co_await uring::nop_op(context);
  throw std::runtime_error{"the first to fail"};
}

task<> stop_after_a_nop(io_context& context) {
  (void)co_await uring::nop_op(context);
  context.stop();
}

task<std::string> what_a_second_run_says(io_context& context) {
  try {
    context.run();
  } catch (const std::logic_error& error) {
    co_return error.what();
  }
  co_return "nothing";
}

// Still has something to wait for when it has been canceled.
task<> wait_and_tidy_up(io_context& context, int socket, bool& tidied_up) {
  (void)co_await uring::poll_op(context, socket, POLLIN);
  (void)co_await uring::nop_op(context);
  tidied_up = true;
}

// Waits in vain on a silent socket, until somebody cancels it.
task<> wait_for_data(io_context& context, int socket, int& ended_with) {
  const counted frame;
  const io_result readable = co_await uring::poll_op(context, socket, POLLIN);
  ended_with = readable.error();
}

}  // namespace

TEST_CASE("07.4 run returns when the last task has ended", "[07.4]") {
  const watchdog deadline{3s, "run() turns as long as there are tasks, and no longer"};
  io_context context;
  int done = 0;
  context.spawn(await_nops(context, 3, done));
  context.spawn(await_nops(context, 100, done));
  context.run();
  UNSCOPED_INFO("one turn is not enough: go on until every task has ended");
  CHECK(done == 103);
  CHECK(context.in_flight() == 0);
}

TEST_CASE("07.4 run returns at once without tasks", "[07.4]") {
  const watchdog deadline{3s, "there is no task, so there is nothing to wait for"};
  {
    io_context idle;
    course_test::manual_ring kernel{idle};
    idle.run();
    UNSCOPED_INFO(
        "without a task run() made a turn, which waits for a completion that never comes: look at "
        "tasks_.empty() before each turn, even the first");
    REQUIRE(kernel.ring().system_calls() == 0);
  }
  io_context context;
  int done = 0;
  context.run();
  context.spawn(await_nops(context, 1, done));
  context.run();
  context.run();
  CHECK(done == 1);
}

TEST_CASE("07.4 run returns when no task is left, whatever is still in flight", "[07.4]") {
  const watchdog deadline{3s,
                          "run() returns when no task is left, even if a request without a task is "
                          "in flight: look at tasks_.empty() before each turn"};
  const course_test::socket_pair silent = course_test::unix_pair();
  io_context context;
  int done = 0;
  context.spawn(await_nops(context, 1, done));
  context.start_unheard([fd = silent.theirs.get()](::io_uring_sqe& sqe) {
    ::io_uring_prep_poll_add(&sqe, fd, POLLIN);
  });
  context.run();
  CHECK(done == 1);
  UNSCOPED_INFO("the poll of the silent socket can complete only when the context is destroyed");
  CHECK(context.in_flight() == 1);
}

TEST_CASE("07.4 tasks on one thread take turns", "[07.4]") {
  const watchdog deadline{3s, "each completion resumes its own task"};
  io_context context;
  std::string notes;
  context.spawn(note_twice(context, "a", notes));
  context.spawn(note_twice(context, "b", notes));
  context.run();
  UNSCOPED_INFO("spawn runs a task up to its first wait; the loop runs the rest");
  CHECK(notes == "a1 b1 a2 b2 ");
}

TEST_CASE("07.4 everything that has completed is delivered", "[07.4]") {
  const watchdog deadline{3s, "one turn may bring many completions: deliver all of them"};
  io_context context;
  int done = 0;
  for (int i = 0; i < 50; ++i) context.spawn(await_nops(context, 2, done));
  context.run();
  CHECK(done == 100);
}

TEST_CASE("07.4 tasks that nothing can wake are an error, not a sleep", "[07.4]") {
  const watchdog deadline{3s, "nothing is in flight, so nothing will ever complete: say so"};
  io_context context;
  context.spawn(wait_for_nobody());
  CHECK_THROWS_MATCHES(context.run(), std::logic_error,
                       Catch::Matchers::MessageMatches(ContainsSubstring("in flight")));
  UNSCOPED_INFO("run() leaves only when no task is left");
  CHECK(counted::live() == 0);
}

TEST_CASE("07 run throws the exception that escaped, not that another task then waits in vain",
          "[07]") {
  const watchdog deadline{3s, "nothing is in flight, so nothing will ever complete: say so"};
  io_context context;
  context.spawn(wait_for_nobody());
  context.spawn(fail_after_a_nop(context));
  UNSCOPED_INFO("the vain wait is a consequence: throw the exception that escaped the other task");
  CHECK_THROWS_WITH(context.run(), "the first to fail");
  CHECK(counted::live() == 0);
}

TEST_CASE("07.4 tasks that nothing can wake are an error during a stop, too", "[07.4]") {
  const watchdog deadline{3s, "a stop wakes operations, and this task waits for none: say so"};
  io_context context;
  context.spawn(wait_for_nobody());
  context.spawn(stop_after_a_nop(context));
  CHECK_THROWS_MATCHES(context.run(), std::logic_error,
                       Catch::Matchers::MessageMatches(ContainsSubstring("in flight")));
  CHECK(counted::live() == 0);
}

TEST_CASE("07.4 a stop lets each task go on to its end before run returns", "[07.4]") {
  const watchdog deadline{3s, "a stop has to cancel whatever waits"};
  const course_test::socket_pair silent = course_test::unix_pair();
  bool tidied_up = false;
  io_context context;
  context.spawn(wait_and_tidy_up(context, silent.theirs.get(), tidied_up));
  context.spawn(stop_after_a_nop(context));
  context.run();
  UNSCOPED_INFO("a stop does not end the loop: it turns until the last task has ended");
  CHECK(tidied_up);
}

TEST_CASE("07.4 a result comes out of run", "[07.4]") {
  const watchdog deadline{3s, "run() turns as long as there are tasks, and no longer"};
  io_context context;
  CHECK(context.run(answer_after_a_nop(context)) == 42);
  CHECK_THROWS_WITH(context.run(fail_after_a_nop(context)), "the first to fail");
}

TEST_CASE("07.4 run inside a coroutine throws, and says what to do instead", "[07.4]") {
  const watchdog deadline{3s, "it waits for its own caller, or no task is left to wait for"};
  io_context context;
  CHECK_THAT(context.run(what_a_second_run_says(context)), ContainsSubstring("co_await it"));
  UNSCOPED_INFO("and nothing else is stopped by that");
  CHECK(context.run(answer_after_a_nop(context)) == 42);
}

TEST_CASE("07.4 a hundred operations in flight go through a queue of four", "[07.4]") {
  const watchdog deadline{5s, "completions beyond the queue's size wait in the kernel: reap again"};
  io_context context{tiny};
  int done = 0;
  for (int i = 0; i < 100; ++i) context.spawn(await_nops(context, 10, done));
  context.run();
  CHECK(done == 1000);
}

TEST_CASE("07 an exception that escapes one task ends the others, and run throws it", "[07]") {
  const watchdog deadline{5s, "an exception escaped: what the others wait for is to be canceled"};
  const course_test::socket_pair silent = course_test::unix_pair();
  int ended_with = 0;
  io_context context;
  context.spawn(wait_for_data(context, silent.theirs.get(), ended_with));
  context.spawn(fail_after_a_nop(context));
  INFO("a failure stops the tasks; then run() turns until the last one has ended, and throws");
  CHECK_THROWS_WITH(context.run(), "the first to fail");
  CHECK(counted::live() == 0);
  CHECK(ended_with == ECANCELED);
}
