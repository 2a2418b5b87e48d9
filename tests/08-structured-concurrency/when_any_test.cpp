// SPDX-License-Identifier: MIT
// Task 08.2: the first of several tasks, and what becomes of the others.
#include "when_any.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "allocations.hpp"
#include "cannot_be_canceled.hpp"
#include "counted.hpp"
#include "io_context.hpp"
#include "turns.hpp"
#include "until_asked.hpp"

using course_test::counted;
using course_test::pass_turns;
using course_test::until_asked;
using uring::cancel_source;
using uring::io_context;
using uring::task;

namespace {

task<std::string> name_after(io_context& context, int turns, std::string name, counted) {
  co_await pass_turns(context, turns);
  co_return name;
}

// Ends only if it is canceled.
task<std::string> listen(io_context& context, cancel_source& source, int& canceled, counted) {
  co_await until_asked{context, source};
  ++canceled;
  co_return "a loser";
}

// Notes, when it starts, how many blocks operator new has given out. Ends only if it is canceled.
task<> note_blocks(io_context& context, cancel_source& source, std::size_t& blocks) {
  blocks = course_test::allocations();
  co_await until_asked{context, source};
}

task<> note_blocks(std::size_t& blocks) {
  blocks = course_test::allocations();
  co_return;
}

task<std::string> throw_after(io_context& context, int turns, std::string what, counted) {
  co_await pass_turns(context, turns);
  throw std::runtime_error{what};
}

}  // namespace

TEST_CASE("08.2 the first to end wins, and the losers are canceled", "[08.2]") {
  io_context context;
  cancel_source losers{context};
  int canceled = 0;
  UNSCOPED_INFO("the winner must cancel the others: they wait in vain");
  const auto first = context.run(uring::when_any(losers, listen(context, losers, canceled, {}),
                                                 name_after(context, 2, "the winner", {}),
                                                 listen(context, losers, canceled, {})));
  CHECK(first.index == 1);
  CHECK(first.value == "the winner");
  UNSCOPED_INFO("every loser ends, and is joined, before when_any returns");
  CHECK(canceled == 2);
}

TEST_CASE("08.2 a cancel of the losers that fails is thrown", "[08.2]") {
  io_context context;
  cancel_source losers{context};
  course_test::cannot_be_canceled other;
  losers.watch(other);
  UNSCOPED_INFO(
      "losers.cancel() threw, so somebody was not asked to end, and when_any() returned a value as "
      "if all had been: leave the exception to the frame");
  CHECK_THROWS_WITH(context.run(uring::when_any(losers, name_after(context, 0, "winner", {}))),
                    "no more requests");
  CHECK(counted::live() == 0);
}

TEST_CASE("08.2 nothing is in flight and no frame is left when it returns", "[08.2]") {
  struct check {
    static task<> nothing_is_left(io_context& context) {
      cancel_source losers{context};
      int canceled = 0;
      const auto first = co_await uring::when_any(losers, listen(context, losers, canceled, {}),
                                                  name_after(context, 1, "done", {}));
      CHECK(first.value == "done");
      UNSCOPED_INFO("the loser has been asked to end, and has not ended: cancel *and* join");
      CHECK(canceled == 1);
      CHECK(context.in_flight() == 0);
      UNSCOPED_INFO("a loser's frame outlived when_any");
      CHECK(counted::live() == 0);
    }
  };
  io_context context;
  context.run(check::nothing_is_left(context));
}

TEST_CASE("08.2 a loser that cannot be canceled is waited for", "[08.2]") {
  io_context context;
  cancel_source losers{context};
  const auto first = context.run(uring::when_any(losers, name_after(context, 5, "late", {}),
                                                 name_after(context, 1, "early", {})));
  UNSCOPED_INFO("the result is the first one's: a later end must not replace it");
  CHECK(first.value == "early");
  CHECK(first.index == 1);
  UNSCOPED_INFO("it was not joined");
  CHECK(counted::live() == 0);
}

TEST_CASE("08.2 an exception of a loser is dropped", "[08.2]") {
  io_context context;
  cancel_source losers{context};
  UNSCOPED_INFO(
      "when_any() threw, although another task had won: of the outcomes, give only the first to "
      "the counter");
  const auto first = context.run(uring::when_any(losers, throw_after(context, 3, "too late", {}),
                                                 name_after(context, 1, "early", {})));
  UNSCOPED_INFO("an outcome that came second was taken for the first");
  CHECK(first.value == "early");
  CHECK(counted::live() == 0);
}

TEST_CASE("08.2 an exception of the winner is thrown when the losers have ended", "[08.2]") {
  struct check {
    static task<std::string> what_it_throws(io_context& context, int& canceled) {
      cancel_source losers{context};
      try {
        co_await uring::when_any(losers, listen(context, losers, canceled, {}),
                                 throw_after(context, 1, "the winner's", {}));
      } catch (const std::runtime_error& error) {
        co_return error.what();
      }
      co_return "nothing";
    }
  };
  io_context context;
  int canceled = 0;
  UNSCOPED_INFO(
      "a task that throws first has ended first, too. If every task waits, the losers were not "
      "canceled: cancel them however the first task ended");
  CHECK(context.run(check::what_it_throws(context, canceled)) == "the winner's");
  CHECK(canceled == 1);
}

TEST_CASE("08.2 a winner that never waits cancels the tasks that are started after it", "[08.2]") {
  io_context context;
  cancel_source losers{context};
  int canceled = 0;
  UNSCOPED_INFO("a task that was never started never arrives: all are started, all are joined");
  const auto first = context.run(uring::when_any(losers, name_after(context, 0, "at once", {}),
                                                 listen(context, losers, canceled, {})));
  CHECK(first.value == "at once");
  CHECK(canceled == 1);
}

TEST_CASE("08.2 the first to end wins even if another has canceled the source", "[08.2]") {
  io_context context;
  cancel_source losers{context};
  losers.cancel();
  UNSCOPED_INFO(
      "the source was canceled before a task had ended, and the first to end stored nothing: "
      "first.index tells whether it is the first, losers.is_canceled() does not");
  const auto first = context.run(uring::when_any(losers, name_after(context, 2, "late", {}),
                                                 name_after(context, 1, "early", {})));
  CHECK(first.index == 1);
  CHECK(first.value == "early");
}

TEST_CASE("08.2 every frame is made before the first task starts", "[08.2]") {
  io_context context;
  cancel_source losers{context};
  std::size_t when_the_first_started = 0;
  std::size_t when_the_last_started = 0;
  context.run(uring::when_any(losers, note_blocks(context, losers, when_the_first_started),
                              note_blocks(when_the_last_started)));
  UNSCOPED_INFO(
      "a frame was made when a task had started. Making a frame may throw std::bad_alloc, and then "
      "that task would be destroyed with its request in flight: make all frames in one loop, and "
      "start them in another");
  CHECK(when_the_last_started == when_the_first_started);
}

TEST_CASE("08.2 of several that end at once, one wins", "[08.2]") {
  io_context context;
  for (int round = 0; round < 100; ++round) {
    cancel_source losers{context};
    std::vector<task<std::string>> runners;
    runners.reserve(10);
    for (int i = 0; i < 10; ++i) {
      runners.push_back(name_after(context, 1, std::to_string(i), {}));
    }
    const auto first = context.run(uring::when_any(losers, std::move(runners)));
    UNSCOPED_INFO("index and value are not of the same task: only the first one may leave both");
    REQUIRE(first.value == std::to_string(first.index));
    REQUIRE(counted::live() == 0);
  }
}
