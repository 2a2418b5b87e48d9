// SPDX-License-Identifier: MIT
// Task 07.3: tasks that nobody awaits, without a ring.
#include <catch2/catch_test_macros.hpp>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "allocations.hpp"
#include "counted.hpp"
#include "first_run.hpp"
#include "gate.hpp"
#include "spawned_tasks.hpp"

using course_test::counted;
using course_test::gate;
using uring::task;

namespace {

// The list alone, with notes of what its owner hears.
struct spawned_tasks final : uring::spawned_tasks {
  int failures = 0;
  int frames_at_failure = 0;  // of tasks, while the owner hears of the first failure
  std::coroutine_handle<> next = std::noop_coroutine();  // goes on when the last task has ended

 private:
  void on_failure() override {
    ++failures;
    frames_at_failure = counted::live();
  }
  std::coroutine_handle<> on_empty() noexcept override { return next; }
};

// A ring that takes no more requests cannot cancel anything either.
struct tasks_that_cannot_stop final : uring::spawned_tasks {
 private:
  void on_failure() override { throw std::runtime_error{"no more requests"}; }
};

// A parameter stays as long as the frame, which is longer than the body runs.
task<> pass(gate& first, int& steps, counted = {}) {
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

task<> fail_with_a_frame(gate& first, counted = {}) {
  co_await first;
  throw std::runtime_error{"lost its way"};
}

task<> fail_by_errno() {
  throw std::system_error{std::make_error_code(std::errc::no_such_device), "open"};
  co_return;
}

task<> throw_seven() {
  throw 7;
  co_return;
}

// Starts a task that starts a task, so many in all; notes which begins and which goes on.
task<> start_the_next(spawned_tasks& tasks, int number, int count, std::vector<int>& notes) {
  notes.push_back(number);
  if (number < count) tasks.start(start_the_next(tasks, number + 1, count, notes));
  notes.push_back(-number);
  co_return;
}

task<> note_and_wait(gate& first, std::string& log) {
  log += "task ";
  co_await first;
  log += "end ";
}

// Suspended until it is resumed by its handle.
struct resumable {
  struct promise_type {
    resumable get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const { throw; }
  };
  std::coroutine_handle<> frame;
};

// At the end of a chain of nested starts: one more task, whose list is gone before it has begun.
task<> nest_and_drop(spawned_tasks& tasks, int depth, int& steps) {
  if (depth > 1) {
    tasks.start(nest_and_drop(tasks, depth - 1, steps));
    co_return;
  }
  spawned_tasks own;
  own.start(end_at_once(steps));
  CHECK(own.size() == 1);
}

// At the end of a chain of nested starts: so many more tasks, all of them left to the outermost.
task<> nest_and_fan_out(spawned_tasks& tasks, int depth, int count, int& steps) {
  if (depth > 1) {
    tasks.start(nest_and_fan_out(tasks, depth - 1, count, steps));
    co_return;
  }
  for (int i = 0; i < count; ++i) tasks.start(end_at_once(steps));
  CHECK(steps == 0);
}

// A number as a handle: a list of handles resumes none.
std::coroutine_handle<> handle_of(std::uintptr_t number) {
  return std::coroutine_handle<>::from_address(reinterpret_cast<void*>(number));
}

resumable note_when_resumed(std::string& log) {
  log += "owner";
  co_return;
}

task<> fail_at_once(std::string what) {
  throw std::runtime_error{what};
  co_return;
}

std::string thrown_by(uring::spawned_tasks& tasks) {
  try {
    tasks.rethrow_escaped();
  } catch (const std::runtime_error& escaped) {
    return escaped.what();
  }
  return "nothing";
}

// Says so when its frame goes.
class noted_end {
 public:
  noted_end(std::string& log, char name) noexcept : log_{log}, name_{name} {}
  noted_end(noted_end&&) = delete;
  ~noted_end() { log_ += name_; }

 private:
  std::string& log_;
  char name_;
};

task<> wait_for_nobody(std::string& log, char name) {
  const noted_end last_words{log, name};
  co_await std::suspend_always{};
}

}  // namespace

TEST_CASE("07.3 a started task runs up to its first wait", "[07.3]") {
  gate first;
  int steps = 0;
  spawned_tasks tasks;
  tasks.start(pass(first, steps));
  UNSCOPED_INFO("a task is lazy: something has to await it before its body runs");
  CHECK(steps == 1);
  UNSCOPED_INFO("the task waits, so it is still there");
  CHECK(tasks.size() == 1);
  CHECK(counted::live() == 1);
}

TEST_CASE("07.3 a task that has ended is gone, frame and all", "[07.3]") {
  gate first;
  int steps = 0;
  spawned_tasks tasks;
  tasks.start(pass(first, steps));
  REQUIRE(steps == 1);
  first.open();
  CHECK(steps == 2);
  UNSCOPED_INFO("a loop that runs until empty() would never end");
  CHECK(tasks.empty());
  UNSCOPED_INFO("the task has ended, and its frame is still there: assign an empty task over it");
  CHECK(counted::live() == 0);
}

TEST_CASE("07.3 a task that never waits has ended when start returns", "[07.3]") {
  int steps = 0;
  spawned_tasks tasks;
  for (int i = 0; i < 3; ++i) tasks.start(end_at_once(steps));
  CHECK(steps == 3);
  CHECK(tasks.empty());
  CHECK(thrown_by(tasks) == "nothing");
}

TEST_CASE("07.3 a task that ends normally does not stop the others", "[07.3]") {
  gate first;
  int steps = 0;
  spawned_tasks tasks;
  tasks.start(pass(first, steps));
  tasks.start(end_at_once(steps));
  REQUIRE(steps == 2);
  UNSCOPED_INFO(
      "no exception escaped, but failed() was called, and that stops all tasks. outcome::is_set() "
      "is true for a normal end too: call failed() only if error() is not null");
  CHECK(tasks.failures == 0);
  first.open();
  CHECK(tasks.failures == 0);
}

TEST_CASE("07.3 an exception that escapes a task is kept until it is asked for", "[07.3]") {
  gate first;
  spawned_tasks tasks;
  tasks.start(fail_after(first, "lost its way"));
  REQUIRE(tasks.size() == 1);
  first.open();
  UNSCOPED_INFO("nobody awaits a spawned task, so the exception has to be stored: tell `all`");
  REQUIRE(thrown_by(tasks) == "lost its way");
  CHECK(tasks.empty());
  CHECK(tasks.failures == 1);
  UNSCOPED_INFO("thrown once");
  CHECK(thrown_by(tasks) == "nothing");
}

TEST_CASE("07.3 of several exceptions the first is kept", "[07.3]") {
  spawned_tasks tasks;
  tasks.start(fail_at_once("the cause"));
  tasks.start(fail_at_once("a consequence"));
  UNSCOPED_INFO("later exceptions are often consequences: keep the first");
  CHECK(thrown_by(tasks) == "the cause");
}

TEST_CASE("07.3 an exception of on_failure() hides nothing and leaks no frame", "[07.3]") {
  int steps = 0;
  std::string thrown;
  UNSCOPED_INFO("if the program ends here, an exception left keep(): await the task's outcome");
  const auto before = course_test::live_allocations();
  {
    tasks_that_cannot_stop tasks;
    tasks.start(end_at_once(steps));  // the next keep() that ends frees this one's frame
    tasks.start(fail_at_once("the cause"));
    thrown = thrown_by(tasks);
  }
  const auto after = course_test::live_allocations();
  CHECK(thrown == "the cause");
  UNSCOPED_INFO("failed() threw, and the frame of the keep() that had ended before was lost");
  CHECK(after == before);
}

TEST_CASE("07.3 an exception keeps its type, whatever it is", "[07.3]") {
  spawned_tasks tasks;
  tasks.start(fail_by_errno());
  UNSCOPED_INFO("keep the exception_ptr itself: one made of what() has lost its type and its code");
  CHECK_THROWS_AS(tasks.rethrow_escaped(), std::system_error);
  tasks.start(throw_seven());
  UNSCOPED_INFO("an int was thrown, and nobody was told: not every exception is a std::exception");
  CHECK_THROWS_AS(tasks.rethrow_escaped(), int);
}

TEST_CASE("07.3 a failed task's frame is gone before its failure is told", "[07.3]") {
  gate first;
  spawned_tasks tasks;
  tasks.start(fail_with_a_frame(first));
  REQUIRE(counted::live() == 1);
  first.open();
  REQUIRE(tasks.failures == 1);
  UNSCOPED_INFO(
      "on_failure() may stop everything, and so the failed task must have let go of what "
      "it held: its frame goes first");
  CHECK(tasks.frames_at_failure == 0);
  CHECK(thrown_by(tasks) == "lost its way");
}

TEST_CASE("07.3 tasks that have not ended are destroyed with their owner", "[07.3]") {
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

TEST_CASE("07.3 tasks that have not ended are destroyed in the reverse order of their start",
          "[07.3]") {
  std::string log;
  {
    spawned_tasks tasks;
    for (const char name : std::string{"abcdefgh"}) tasks.start(wait_for_nobody(log, name));
    REQUIRE(log.empty());
  }
  UNSCOPED_INFO("a task may refer to what an earlier one owns, as in a scope");
  CHECK(log == "hgfedcba");
}

TEST_CASE("07.3 of the tasks that have ended at most one still has a frame", "[07.3]") {
  int steps = 0;
  spawned_tasks tasks;
  tasks.start(end_at_once(steps));
  const auto after_one = course_test::live_allocations();
  std::ptrdiff_t more_max = 0;
  for (int i = 0; i < 1000; ++i) {
    tasks.start(end_at_once(steps));
    const std::ptrdiff_t more = course_test::live_allocations() - after_one;
    if (more > more_max) more_max = more;
  }
  CHECK(steps == 1001);
  UNSCOPED_INFO("the frame of a keep() that ends is destroyed by the end of the next one");
  CHECK(more_max == 0);
}

TEST_CASE("07.3 up to the limit a nested start runs its task at once", "[07.3]") {
  constexpr int limit = uring::nested_starts_max;
  spawned_tasks tasks;
  std::vector<int> notes;
  tasks.start(start_the_next(tasks, 1, limit, notes));
  CHECK(tasks.empty());
  std::vector<int> expected;
  for (int i = 1; i <= limit; ++i) expected.push_back(i);
  for (int i = limit; i >= 1; --i) expected.push_back(-i);
  CHECK(notes == expected);
}

TEST_CASE("07.3 one past the limit a task is left to the outermost start", "[07.3]") {
  constexpr int limit = uring::nested_starts_max;
  spawned_tasks tasks;
  std::vector<int> notes;
  tasks.start(start_the_next(tasks, 1, limit + 1, notes));
  CHECK(tasks.empty());
  REQUIRE(notes.size() == 2 * (limit + 1));
  UNSCOPED_INFO(
      "a call in a call without a bound overflows the stack some day: start() goes through "
      "run_to_first_wait()");
  CHECK(notes[limit] == -limit);
  CHECK(notes[2 * limit - 1] == -1);
  CHECK(notes[2 * limit] == limit + 1);
}

TEST_CASE("07.3 a hundred thousand nested starts do not overflow the stack", "[07.3]") {
  constexpr int count = 100'000;
  spawned_tasks tasks;
  std::vector<int> notes;
  tasks.start(start_the_next(tasks, 1, count, notes));
  CHECK(tasks.empty());
  CHECK(notes.size() == 2 * count);
}

TEST_CASE("07 a task that was left to the outermost start may be destroyed before it begins") {
  int steps = 0;
  spawned_tasks tasks;
  tasks.start(nest_and_drop(tasks, uring::nested_starts_max, steps));
  CHECK(tasks.empty());
  CHECK(steps == 0);
}

TEST_CASE("07 two hundred thousand tasks that were left to the outermost start all run") {
  constexpr int count = 200'000;
  int steps = 0;
  spawned_tasks tasks;
  tasks.start(nest_and_fan_out(tasks, uring::nested_starts_max, count, steps));
  CHECK(tasks.empty());
  CHECK(steps == count);
}

TEST_CASE("07 late starts come in their order, without those that were removed") {
  uring::late_starts late;
  for (std::uintptr_t number = 1; number <= 9; ++number) late.push_back(handle_of(number));
  CHECK(late.pop_front() == handle_of(1));
  CHECK(late.pop_front() == handle_of(2));
  late.push_back(handle_of(1));  // another frame, at the address of one that has run
  late.remove(handle_of(3));
  late.remove(handle_of(7));
  late.remove(handle_of(9));
  late.remove(handle_of(2));  // it has run: nothing of it is left to remove
  std::vector<std::coroutine_handle<>> rest;
  while (!late.empty()) rest.push_back(late.pop_front());
  const std::vector expected{handle_of(4), handle_of(5), handle_of(6), handle_of(8), handle_of(1)};
  CHECK((rest == expected));
  late.push_back(handle_of(5));
  late.remove(handle_of(5));
  CHECK(late.empty());
}

TEST_CASE("07 the coroutine that waits for the last task goes on when that has ended") {
  gate first;
  gate second;
  std::string log;
  spawned_tasks tasks;
  tasks.start(note_and_wait(first, log));
  tasks.start(note_and_wait(second, log));
  tasks.next = note_when_resumed(log).frame;
  second.open();
  UNSCOPED_INFO("one of the two has not ended");
  CHECK(log == "task task end ");
  first.open();
  CHECK(log == "task task end end owner");
}

TEST_CASE("07 an element leaves its list by itself, from wherever it stands") {
  struct element : uring::list_link {
    explicit element(int n) noexcept : number{n} {}
    int number;
  };
  uring::linked_list<element> list;
  element one{1};
  element two{2};
  element three{3};
  const auto numbers = [&list] {
    std::vector<int> all;
    list.for_each([&all](const element& each) { all.push_back(each.number); });
    return all;
  };
  for (element* each : {&one, &two, &three}) list.push_back(*each);
  CHECK(numbers() == std::vector{1, 2, 3});
  two.unlink();
  two.unlink();  // it is in none: nothing happens
  CHECK_FALSE(two.is_linked());
  CHECK(numbers() == std::vector{1, 3});
  CHECK(&list.pop_front() == &one);
  list.push_back(one);
  CHECK(&list.back() == &one);
  three.unlink();
  one.unlink();
  CHECK(list.empty());
}
