// SPDX-License-Identifier: MIT
// Task 07.2: tasks that nobody awaits, without a ring.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <coroutine>
#include <memory>
#include <stdexcept>
#include <string>

#include "counted.hpp"
#include "gate.hpp"
#include "spawned_tasks.hpp"

using course_test::counted;
using course_test::gate;
using uring::spawned_tasks;
using uring::task;

namespace {

task<> pass(gate& first, int& steps) {
  const counted frame;
  ++steps;
  co_await first;
  ++steps;
}

task<> end_at_once(int& steps) {
  ++steps;
  co_return;
}

task<> fail_after(gate& first, std::string what) {
  co_await first;
  throw std::runtime_error{what};
}

task<> fail_at_once(std::string what) {
  throw std::runtime_error{what};
  co_return;
}

std::string thrown_by(spawned_tasks& tasks) {
  try {
    tasks.rethrow_escaped();
  } catch (const std::runtime_error& escaped) {
    return escaped.what();
  }
  return "nothing";
}

// Says so when its frame goes.
class farewell {
 public:
  farewell(std::string& log, char name) noexcept : log_{log}, name_{name} {}
  farewell(farewell&&) = delete;
  ~farewell() { log_ += name_; }

 private:
  std::string& log_;
  char name_;
};

task<> wait_for_nobody(std::string& log, char name) {
  const farewell last_words{log, name};
  co_await std::suspend_always{};
}

}  // namespace

TEST_CASE("07.2 a started task runs up to its first wait", "[07.2]") {
  gate first;
  int steps = 0;
  spawned_tasks tasks;
  tasks.start(pass(first, steps));
  UNSCOPED_INFO("a task is lazy: something has to await it before its body runs");
  CHECK(steps == 1);
  UNSCOPED_INFO("it waits, so it is still there");
  CHECK(tasks.size() == 1);
  CHECK(counted::live() == 1);
}

TEST_CASE("07.2 a task that has ended is gone, frame and all", "[07.2]") {
  gate first;
  int steps = 0;
  spawned_tasks tasks;
  tasks.start(pass(first, steps));
  REQUIRE(steps == 1);
  first.open();
  CHECK(steps == 2);
  UNSCOPED_INFO("who runs until empty() would wait for ever");
  CHECK(tasks.empty());
  CHECK(counted::live() == 0);
}

TEST_CASE("07.2 a task that never waits has ended when start returns", "[07.2]") {
  int steps = 0;
  spawned_tasks tasks;
  for (int i = 0; i < 3; ++i) tasks.start(end_at_once(steps));
  CHECK(steps == 3);
  CHECK(tasks.empty());
  CHECK_FALSE(tasks.any_escaped());
}

TEST_CASE("07.2 what escapes a task is kept for whoever asks", "[07.2]") {
  gate first;
  spawned_tasks tasks;
  tasks.start(fail_after(first, "lost its way"));
  REQUIRE(tasks.size() == 1);
  UNSCOPED_INFO("the end of the program: an exception left keep(), so await the task's outcome");
  first.open();
  UNSCOPED_INFO("nobody awaits a spawned task, so the exception has to be stored");
  REQUIRE(tasks.any_escaped());
  CHECK(tasks.empty());
  CHECK(thrown_by(tasks) == "lost its way");
  UNSCOPED_INFO("thrown once");
  CHECK(thrown_by(tasks) == "nothing");
}

TEST_CASE("07.2 of several exceptions the first is kept", "[07.2]") {
  spawned_tasks tasks;
  UNSCOPED_INFO("the end of the program: an exception left keep(), so await the task's outcome");
  tasks.start(fail_at_once("the cause"));
  tasks.start(fail_at_once("a consequence"));
  UNSCOPED_INFO("those that come later are often consequences: keep the first");
  CHECK(thrown_by(tasks) == "the cause");
}

TEST_CASE("07.2 tasks that have not ended are destroyed with their owner", "[07.2]") {
  gate first;
  gate second;
  int steps = 0;
  {
    spawned_tasks tasks;
    tasks.start(pass(first, steps));
    tasks.start(pass(second, steps));
    REQUIRE(counted::live() == 2);
  }
  CHECK(steps == 2);
  CHECK(counted::live() == 0);
}

TEST_CASE("07.2 tasks that have not ended are destroyed in the reverse order of their start",
          "[07.2]") {
  std::string log;
  {
    spawned_tasks tasks;
    for (const char name : std::string{"abcdefgh"}) tasks.start(wait_for_nobody(log, name));
    REQUIRE(log.empty());
  }
  UNSCOPED_INFO("a task may refer to what an earlier one owns, as in a scope");
  CHECK(log == "hgfedcba");
}
