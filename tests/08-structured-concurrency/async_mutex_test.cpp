// SPDX-License-Identifier: MIT
// The async mutex: one holder across several awaits, and those who wait in a line.
#include "async_mutex.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <coroutine>
#include <string>
#include <utility>

#include "counted.hpp"
#include "io_context.hpp"
#include "ring_modes.hpp"
#include "scope.hpp"
#include "turns.hpp"

using course_test::counted;
using course_test::pass_turns;
using uring::async_mutex;
using uring::io_context;
using uring::scope;
using uring::task;

namespace {

// What two coroutines would spoil if both were between its two lines.
struct shared_line {
  std::string text;
  int inside = 0;
  int inside_max = 0;
};

task<> write_word(io_context& context, async_mutex& mutex, shared_line& line, char letter,
                  counted) {
  const async_mutex::guard held = co_await mutex.lock();
  line.inside_max = std::max(line.inside_max, ++line.inside);
  line.text += letter;
  co_await pass_turns(context, 1);
  line.text += letter;
  --line.inside;
}

task<> count_up(async_mutex& mutex, int& value) {
  const async_mutex::guard held = co_await mutex.lock();
  ++value;
}

task<> hold_for_ever(async_mutex& mutex, counted) {
  const async_mutex::guard held = co_await mutex.lock();
  co_await std::suspend_always{};
}

}  // namespace

TEST_CASE("08 an async mutex has one holder, across what the holder awaits", "[08]") {
  for (const uring::ring_options& options : course_test::all_rings) {
    struct check {
      static task<> run(io_context& context) {
        async_mutex mutex{context};
        shared_line line;
        scope writers{context};
        for (const char letter : std::string{"abcdefgh"}) {
          writers.spawn(write_word(context, mutex, line, letter, {}));
        }
        co_await writers.join();
        CHECK(line.inside_max == 1);
        UNSCOPED_INFO("first come, first served");
        CHECK(line.text == "aabbccddeeffgghh");
      }
    };
    io_context context{options};
    context.run(check::run(context));
    CHECK(counted::live() == 0);
  }
}

TEST_CASE("08 a hundred thousand wait for one mutex without a deep stack", "[08]") {
  struct check {
    static task<> run(io_context& context) {
      constexpr int count = 100'000;
      async_mutex mutex{context};
      int value = 0;
      scope waiting{context};
      {
        const async_mutex::guard held = co_await mutex.lock();
        for (int i = 0; i < count; ++i) waiting.spawn(count_up(mutex, value));
        CHECK(value == 0);
      }
      UNSCOPED_INFO("unlocking hands over; the loop resumes, not the one who unlocks");
      CHECK(value == 0);
      co_await waiting.join();
      CHECK(value == count);
    }
  };
  io_context context;
  context.run(check::run(context));
}

TEST_CASE("08 who unlocks and locks again stands at the end of the line", "[08]") {
  struct check {
    static task<> twice(io_context& context, async_mutex& mutex, std::string& log, char name) {
      for (int i = 0; i < 2; ++i) {
        const async_mutex::guard held = co_await mutex.lock();
        co_await pass_turns(context, 1);
        log += name;
      }
    }
    static task<> run(io_context& context) {
      async_mutex mutex{context};
      std::string log;
      scope tasks{context};
      tasks.spawn(twice(context, mutex, log, 'a'));
      tasks.spawn(twice(context, mutex, log, 'b'));
      co_await tasks.join();
      CHECK(log == "abab");
    }
  };
  io_context context;
  context.run(check::run(context));
}

TEST_CASE("08 a guard that is moved unlocks once", "[08]") {
  struct check {
    static task<> run(io_context& context) {
      async_mutex mutex{context};
      {
        async_mutex::guard first = co_await mutex.lock();
        const async_mutex::guard second = std::move(first);
      }
      const async_mutex::guard again = co_await mutex.lock();
    }
  };
  io_context context;
  context.run(check::run(context));
}

TEST_CASE("08 a mutex and its line survive tasks that are destroyed", "[08]") {
  int value = 0;
  {
    io_context context;
    async_mutex mutex{context};
    context.spawn(hold_for_ever(mutex, {}));
    for (int i = 0; i < 10; ++i) context.spawn(count_up(mutex, value));
    CHECK_THROWS_WITH(context.run(), Catch::Matchers::ContainsSubstring("in flight"));
    CHECK(counted::live() == 0);
  }
  UNSCOPED_INFO("the lock was handed to a task that had no future");
  CHECK(value == 0);
}
