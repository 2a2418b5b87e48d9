// SPDX-License-Identifier: MIT
// finally(body, cleanup): the cleanup is awaited however the body ends, and its result is the
// body's.
#include "finally.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "cancel_source.hpp"
#include "counted.hpp"
#include "io_context.hpp"
#include "scope.hpp"
#include "task.hpp"
#include "turns.hpp"

using course_test::counted;
using course_test::pass_turns;
using uring::io_context;
using uring::task;

namespace {

enum class way { returns, throws };

constexpr way both_ways[] = {way::returns, way::throws};
constexpr int turn_counts[] = {0, 1, 3};

task<> act(io_context& context, int turns, way how, std::string name, std::string& log, counted) {
  co_await pass_turns(context, turns);
  log += name + ' ';
  if (how == way::throws) throw std::runtime_error{name};
}

task<int> answer(io_context& context, int turns, way how, std::string& log, counted) {
  co_await act(context, turns, how, "body", log, {});
  co_return 42;
}

// What it gave or threw, as text.
template <typename T>
task<std::string> end_of(task<T> ended) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(ended);
      co_return "nothing";
    } else {
      const T value = co_await std::move(ended);
      co_return std::to_string(value);
    }
  } catch (const std::runtime_error& error) {
    co_return error.what();
  }
}

// The body's exception counts more than the cleanup's, because it came first.
std::string expected(way body, way cleanup, const std::string& value) {
  if (body == way::throws) return "body";
  return cleanup == way::throws ? "cleanup" : value;
}

}  // namespace

TEST_CASE("08 finally awaits its cleanup whether the body returns or throws", "[08]") {
  for (const way body : both_ways) {
    for (const way cleanup : both_ways) {
      for (const int turns : turn_counts) {
        INFO("body " << (body == way::throws ? "throws" : "returns") << ", cleanup "
                     << (cleanup == way::throws ? "throws" : "returns") << ", after " << turns
                     << " turns");
        io_context context;
        std::string log;
        const std::string ended =
            context.run(end_of(uring::finally(act(context, turns, body, "body", log, {}),
                                              act(context, turns, cleanup, "cleanup", log, {}))));
        CHECK(log == "body cleanup ");
        CHECK(ended == expected(body, cleanup, "nothing"));
        CHECK(counted::live() == 0);
      }
    }
  }
}

TEST_CASE("08 finally gives what its body returns", "[08]") {
  for (const way body : both_ways) {
    for (const way cleanup : both_ways) {
      io_context context;
      std::string log;
      const std::string ended = context.run(end_of(uring::finally(
          answer(context, 1, body, log, {}), act(context, 1, cleanup, "cleanup", log, {}))));
      CHECK(log == "body cleanup ");
      CHECK(ended == expected(body, cleanup, "42"));
      CHECK(counted::live() == 0);
    }
  }
}

TEST_CASE("08 finally in finally cleans up from the inside", "[08]") {
  io_context context;
  std::string log;
  const std::string ended = context.run(
      end_of(uring::finally(uring::finally(act(context, 1, way::throws, "body", log, {}),
                                           act(context, 1, way::throws, "inner", log, {})),
                            act(context, 1, way::returns, "outer", log, {}))));
  CHECK(log == "body inner outer ");
  CHECK(ended == "body");
}

TEST_CASE("08 finally awaits its cleanup when its scope was canceled", "[08]") {
  struct check {
    static task<> wait_for_ever(uring::scope& tasks, std::string& log) {
      const uring::io_result ended =
          co_await uring::timeout_op(tasks.source(), std::chrono::hours{1});
      log += ended.error() == ECANCELED ? "canceled " : "otherwise ";
    }
    static task<> body(io_context& context, uring::scope& tasks, std::string& log) {
      tasks.spawn(course_test::cancel_after(context, 1, tasks.source()));
      co_await uring::finally(wait_for_ever(tasks, log),
                              act(context, 2, way::returns, "cleanup", log, {}));
    }
    static task<> run(io_context& context, std::string& log) {
      uring::scope tasks{context};
      co_await tasks.run(body(context, tasks, log));
      log += "left";
    }
  };
  io_context context;
  std::string log;
  context.run(check::run(context, log));
  UNSCOPED_INFO("a cleanup that has to wait does not use the source that was canceled");
  CHECK(log == "canceled cleanup left");
}
