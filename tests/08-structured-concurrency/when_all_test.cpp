// SPDX-License-Identifier: MIT
// Task 08.1: all of several tasks; every one is joined, whatever happens in between.
#include "when_all.hpp"

#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cannot_be_canceled.hpp"
#include "counted.hpp"
#include "io_context.hpp"
#include "promise.hpp"
#include "stack_use.hpp"
#include "turns.hpp"
#include "until_asked.hpp"

using course_test::cannot_be_canceled;
using course_test::counted;
using course_test::pass_turns;
using course_test::stack_use;
using course_test::until_asked;
using uring::cancel_source;
using uring::io_context;
using uring::task;

namespace {

// When it has something to do, and in which order it did it.
struct diary {
  std::string text;
  void note(const std::string& what) { text += what; }
};

task<int> answer(int value, counted) {
  co_return value;
}

task<int> answer_after(uring::promise<>& gate, int value, counted) {
  co_await gate;
  co_return value;
}

task<> note(diary& into, std::string what) {
  into.note(what);
  co_return;
}

task<> open_gates(uring::promise<>& second, uring::promise<>& first) {
  second.resolve();
  first.resolve();
  co_return;
}

task<> note_after(io_context& context, int turns, diary& into, std::string what, counted) {
  co_await pass_turns(context, turns);
  into.note(what);
}

task<> fail(std::string what, counted) {
  throw std::runtime_error{what};
  co_return;
}

task<> fail_after_a_turn(io_context& context, std::string what, counted) {
  co_await pass_turns(context, 1);
  throw std::runtime_error{what};
}

// Ends only if it is canceled, and then by an exception.
task<> wait_or_throw(io_context& context, cancel_source& source, counted) {
  co_await until_asked{context, source};
  throw std::runtime_error{"it was canceled"};
}

template <typename Awaited>
task<std::string> what_it_throws(task<Awaited> awaited) {
  try {
    co_await std::move(awaited);
  } catch (const std::exception& error) {
    co_return error.what();
  }
  co_return "nothing";
}

}  // namespace

TEST_CASE("08.1 when_all waits for tasks that end later, in whatever order", "[08.1]") {
  io_context context;
  diary log;
  cancel_source source{context};
  UNSCOPED_INFO(
      "every task waits: the joiner must be resumed by the last task that arrives, and not before");
  context.run(uring::when_all(source, note_after(context, 3, log, "c", {}),
                              note_after(context, 1, log, "a", {}),
                              note_after(context, 2, log, "b", {})));
  UNSCOPED_INFO("the joiner went on before the last task had ended");
  CHECK(log.text == "abc");
  CHECK(counted::live() == 0);
}

TEST_CASE("08.1 a when_all whose tasks have all ended does not wait", "[08.1]") {
  io_context context;
  cancel_source source{context};
  UNSCOPED_INFO(
      "all had arrived before the joiner waits: then it must not suspend, because no task is left "
      "to resume it. That is what the one more in the count is for");
  const auto values = context.run(uring::when_all(source, answer(1, {}), answer(2, {})));
  CHECK(values == std::tuple{1, 2});
  CHECK(counted::live() == 0);
}

TEST_CASE("08.1 the last task may arrive while the others are being started", "[08.1]") {
  io_context context;
  cancel_source source{context};
  uring::promise<> first;
  uring::promise<> second;
  UNSCOPED_INFO(
      "the joiner does not wait yet, and its handle is null: while tasks are left, arrive() "
      "returns std::noop_coroutine()");
  const auto values = context.run(uring::when_all(
      source, answer_after(first, 1, {}), answer_after(second, 2, {}), open_gates(second, first)));
  UNSCOPED_INFO("results stand in the order of the tasks, not of their ends");
  CHECK(std::get<0>(values) == 1);
  CHECK(std::get<1>(values) == 2);
}

TEST_CASE("08.1 an exception cancels the others, and is thrown when all have ended", "[08.1]") {
  io_context context;
  diary log;
  cancel_source source{context};
  UNSCOPED_INFO(
      "tell the counter of the exception (a moved-from outcome has none), then cancel the "
      "others: their exceptions are not the cause");
  CHECK(context.run(what_it_throws(uring::when_all(
            source, wait_or_throw(context, source, {}), fail_after_a_turn(context, "the cause", {}),
            note_after(context, 3, log, "joined", {})))) == "the cause");
  UNSCOPED_INFO("it threw before a task that does not listen had ended: join all, then throw");
  CHECK(log.text == "joined");
  UNSCOPED_INFO("a frame is still there");
  CHECK(counted::live() == 0);
  CHECK(context.in_flight() == 0);
}

TEST_CASE("08.1 a task that throws at its start does not keep the others from being joined",
          "[08.1]") {
  io_context context;
  cancel_source source{context};
  UNSCOPED_INFO(
      "a task that is started after the failure finds its source canceled, and ends at once");
  CHECK(context.run(what_it_throws(uring::when_all(
            source, fail("at once", {}), wait_or_throw(context, source, {})))) == "at once");
  CHECK(counted::live() == 0);
}

TEST_CASE("08.1 the first of several exceptions is thrown", "[08.1]") {
  io_context context;
  cancel_source source{context};
  UNSCOPED_INFO("a later failure replaced the first one");
  CHECK(context.run(what_it_throws(uring::when_all(source, fail_after_a_turn(context, "second", {}),
                                                   fail("first", {})))) == "first");
}

TEST_CASE("08.1 a source that was canceled before changes nothing but the waits", "[08.1]") {
  io_context context;
  diary log;
  cancel_source source{context};
  source.cancel();
  UNSCOPED_INFO(
      "the source was canceled before, and a task did not run: every task runs, for it may not use "
      "the source");
  context.run(uring::when_all(source, note(log, "one "), note(log, "two")));
  CHECK(log.text == "one two");
  UNSCOPED_INFO(
      "the source was canceled before, and the exception that came first was not kept: tell the "
      "counter of each");
  CHECK(context.run(what_it_throws(uring::when_all(source, fail_after_a_turn(context, "second", {}),
                                                   fail("first", {})))) == "first");
}

TEST_CASE("08.1 a task's exception is thrown even if the cancel of the others fails", "[08.1]") {
  io_context context;
  cancel_source source{context};
  cannot_be_canceled other;
  source.watch(other);
  UNSCOPED_INFO(
      "cancel() may throw, too: tell the counter first, or the task's own exception is lost");
  CHECK(context.run(what_it_throws(uring::when_all(source, fail("the task's own", {})))) ==
        "the task's own");
  CHECK(counted::live() == 0);
}

TEST_CASE("08.1 when_all takes a vector of tasks, without values or with move-only ones",
          "[08.1]") {
  io_context context;
  cancel_source source{context};
  diary log;
  std::vector<task<>> silent_ones;
  silent_ones.reserve(5);
  for (int turns = 5; turns > 0; --turns) {
    silent_ones.push_back(note_after(context, turns, log, std::to_string(turns), {}));
  }
  const std::size_t ended = context.run(uring::when_all(source, std::move(silent_ones))).size();
  CHECK(ended == 5);
  UNSCOPED_INFO("they ran one after the other, not at the same time");
  CHECK(log.text == "12345");

  struct owner {
    static task<std::unique_ptr<int>> make(int value) { co_return std::make_unique<int>(value); }
  };
  std::vector<task<std::unique_ptr<int>>> owners;
  owners.reserve(3);
  for (int i = 0; i < 3; ++i) owners.push_back(owner::make(i));
  const auto values = context.run(uring::when_all(source, std::move(owners)));
  CHECK(*values.at(2) == 2);

  UNSCOPED_INFO("there are no tasks, so there is nothing to wait for");
  CHECK(context.run(uring::when_all(source, std::vector<task<int>>{})).empty());
  CHECK(context.run(uring::when_all(source)) == std::tuple<>{});
  CHECK(counted::live() == 0);
}

TEST_CASE("08.1 a hundred thousand tasks in one when_all need no deep stack", "[08.1]") {
  io_context context;
  cancel_source source{context};
  std::vector<task<int>> many;
  constexpr int count = 100'000;
  many.reserve(count);
  for (int i = 0; i < count; ++i) many.push_back(answer(i, {}));
  const std::vector<int> values = context.run(uring::when_all(source, std::move(many)));
  CHECK(values.size() == count);
  CHECK(values.back() == count - 1);
  CHECK(counted::live() == 0);
}

TEST_CASE("08.1 a task that ends well cancels no other task", "[08.1]") {
  io_context context;
  diary log;
  cancel_source source{context};
  context.run(uring::when_all(source, note_after(context, 0, log, "a", {}),
                              note_after(context, 2, log, "b", {})));
  CHECK(log.text == "ab");
  UNSCOPED_INFO("others.cancel() was called for a task that did not throw: only a failure cancels");
  CHECK_FALSE(source.is_canceled());
}

TEST_CASE("08.1 a hundred thousand when_all, each in the one before, need no deep stack",
          "[08.1]") {
  struct check {
    static task<> level(io_context& context, cancel_source& source, int depth, stack_use& stack) {
      co_await pass_turns(context, 1);
      if (depth > 0) co_await uring::when_all(source, level(context, source, depth - 1, stack));
      stack.look();
    }
  };
  io_context context;
  cancel_source source{context};
  stack_use stack;
  for (const int depth :
       {5'000, 100'000}) {  // a stack that grows too much at 5,000 overflows at 100,000
    context.run(check::level(context, source, depth, stack));
    UNSCOPED_INFO(
        "each end is a call in the one before: arrive() does not resume the joiner, it returns the "
        "joiner's handle, and the final awaiter jumps there");
    REQUIRE(stack.bytes() < stack_use::little);
  }
  CHECK(counted::live() == 0);
}
