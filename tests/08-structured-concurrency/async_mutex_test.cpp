// SPDX-License-Identifier: MIT
// The async mutex: one holder across several awaits, and a line of coroutines that wait.
#include "async_mutex.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <coroutine>
#include <string>
#include <utility>

#include "cancel_source.hpp"
#include "counted.hpp"
#include "io_context.hpp"
#include "ring_modes.hpp"
#include "scope.hpp"
#include "turns.hpp"

using course_test::counted;
using course_test::pass_turns;
using uring::async_mutex;
using uring::cancel_source;
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

constexpr int waiting_tasks = 100'000;

task<> count_up(async_mutex& mutex, int& value) {
  const async_mutex::guard held = co_await mutex.lock();
  ++value;
}

// Notes whether it got the lock: its name, or a minus before it.
task<> note_lock(io_context& context, async_mutex& mutex, cancel_source& source, std::string& log,
                 char name, counted) {
  const async_mutex::guard held = co_await mutex.lock(source);
  if (!held) log += '-';
  log += name;
  co_await pass_turns(context, 1);
}

task<> hold_for_ever(async_mutex& mutex, counted) {
  const async_mutex::guard held = co_await mutex.lock();
  co_await std::suspend_always{};
}

}  // namespace

TEST_CASE("08 an async mutex has one holder, across what the holder awaits", "[08]") {
  for (const uring::ring_options& options : course_test::all_rings) {
    struct check {
      static task<> body(io_context& context, scope& writers, async_mutex& mutex,
                         shared_line& line) {
        for (const char letter : std::string{"abcdefgh"}) {
          writers.spawn(write_word(context, mutex, line, letter, {}));
        }
        co_return;
      }
      static task<> run(io_context& context) {
        async_mutex mutex{context};
        shared_line line;
        scope writers{context};
        co_await writers.run(body(context, writers, mutex, line));
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

TEST_CASE("08 a hundred thousand tasks wait for one mutex without a deep stack", "[08]") {
  struct check {
    static task<> body(scope& waiting, async_mutex& mutex, int& value) {
      {
        const async_mutex::guard held = co_await mutex.lock();
        for (int i = 0; i < waiting_tasks; ++i) waiting.spawn(count_up(mutex, value));
        CHECK(value == 0);
      }
      UNSCOPED_INFO("to unlock is to hand over: the loop resumes the next one, unlock() does not");
      CHECK(value == 0);
    }
    static task<> run(io_context& context) {
      async_mutex mutex{context};
      int value = 0;
      scope waiting{context};
      co_await waiting.run(body(waiting, mutex, value));
      CHECK(value == waiting_tasks);
    }
  };
  io_context context;
  context.run(check::run(context));
}

TEST_CASE("08 a holder that unlocks and locks again stands at the end of the line", "[08]") {
  struct check {
    static task<> twice(io_context& context, async_mutex& mutex, std::string& log, char name) {
      for (int i = 0; i < 2; ++i) {
        const async_mutex::guard held = co_await mutex.lock();
        co_await pass_turns(context, 1);
        log += name;
      }
    }
    static task<> body(io_context& context, scope& tasks, async_mutex& mutex, std::string& log) {
      tasks.spawn(twice(context, mutex, log, 'a'));
      tasks.spawn(twice(context, mutex, log, 'b'));
      co_return;
    }
    static task<> run(io_context& context) {
      async_mutex mutex{context};
      std::string log;
      scope tasks{context};
      co_await tasks.run(body(context, tasks, mutex, log));
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
  UNSCOPED_INFO("the lock was handed to a task that never went on");
  CHECK(value == 0);
}

TEST_CASE("08 a lock is free again if the frame that got it is destroyed", "[08]") {
  struct check {
    // Stands in line at last, though it was started first: so it is destroyed last, too.
    static task<> late(io_context& context, async_mutex& mutex, counted) {
      co_await pass_turns(context, 1);
      const async_mutex::guard held = co_await mutex.lock();
    }
  };
  io_context context;
  async_mutex mutex{context};
  context.spawn(check::late(context, mutex, {}));
  context.spawn(hold_for_ever(mutex, {}));
  CHECK_THROWS_WITH(context.run(), Catch::Matchers::ContainsSubstring("in flight"));
  CHECK(counted::live() == 0);
  UNSCOPED_INFO("the holder's frame went first, and handed the lock to a frame that went next");
  CHECK(mutex.lock().await_ready());
}

TEST_CASE("08 a canceled wait leaves the line, and the others keep their places", "[08]") {
  for (const uring::ring_options& options : course_test::all_rings) {
    struct check {
      static task<> body(io_context& context, scope& tasks, async_mutex& mutex,
                         cancel_source& impatient, cancel_source& patient, std::string& log) {
        {
          const async_mutex::guard held = co_await mutex.lock();
          tasks.spawn(note_lock(context, mutex, patient, log, 'a', {}));
          tasks.spawn(note_lock(context, mutex, impatient, log, 'b', {}));
          tasks.spawn(note_lock(context, mutex, patient, log, 'c', {}));
          impatient.cancel();
          co_await pass_turns(context, 2);
          UNSCOPED_INFO("canceled while it waits: it goes on at once, without the lock");
          CHECK(log == "-b");
        }
        co_await pass_turns(context, 5);
        tasks.spawn(note_lock(context, mutex, impatient, log, 'd', {}));
        UNSCOPED_INFO("canceled before: it does not even take a lock that is free");
        CHECK(log == "-bac-d");
        const async_mutex::guard again = co_await mutex.lock(patient);
        CHECK(again);
      }
      static task<> run(io_context& context) {
        async_mutex mutex{context};
        cancel_source impatient{context};
        cancel_source patient{context};
        std::string log;
        scope tasks{context};
        co_await tasks.run(body(context, tasks, mutex, impatient, patient, log));
      }
    };
    io_context context{options};
    context.run(check::run(context));
    CHECK(counted::live() == 0);
    CHECK(context.in_flight() == 0);
  }
}

TEST_CASE("08 a cancel that comes when the lock was handed over changes nothing", "[08]") {
  struct check {
    static task<> body(io_context& context, scope& tasks, async_mutex& mutex, cancel_source& source,
                       std::string& log) {
      {
        const async_mutex::guard held = co_await mutex.lock(source);
        tasks.spawn(note_lock(context, mutex, source, log, 'a', {}));
        tasks.spawn(note_lock(context, mutex, source, log, 'b', {}));
      }
      source.cancel();  // a has the lock, and does not run yet; b waits
      co_await pass_turns(context, 3);
      CHECK(log == "a-b");
    }
    static task<> run(io_context& context) {
      async_mutex mutex{context};
      cancel_source source{context};
      std::string log;
      scope tasks{context};
      co_await tasks.run(body(context, tasks, mutex, source, log));
      UNSCOPED_INFO("the holder of the lock has given it back");
      CHECK(mutex.lock().await_ready());
    }
  };
  io_context context;
  context.run(check::run(context));
  CHECK(counted::live() == 0);
}

TEST_CASE("08 a frame that stands in the line of a mutex can be destroyed", "[08]") {
  io_context context;
  async_mutex mutex{context};
  cancel_source source{context};
  {
    async_mutex::waiting holder = mutex.lock();
    REQUIRE(holder.await_ready());
    const async_mutex::guard held = holder.await_resume();
    {
      async_mutex::waiting first = mutex.lock(source);
      REQUIRE_FALSE(first.await_ready());
      first.await_suspend(std::noop_coroutine());
      async_mutex::waiting second = mutex.lock(source);
      REQUIRE_FALSE(second.await_ready());
      second.await_suspend(std::noop_coroutine());
    }
    UNSCOPED_INFO("a wait that is gone was still in the source's list");
    source.cancel();
    CHECK(context.in_flight() == 0);
  }
  UNSCOPED_INFO("a wait that is gone was still in line, and got the lock");
  CHECK(context.in_flight() == 0);
  CHECK(mutex.lock().await_ready());
}
