// SPDX-License-Identifier: MIT
// Task 06.2: into a task and back, by jumping.
#include <catch2/catch_test_macros.hpp>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "allocations.hpp"
#include "counted.hpp"
#include "driver.hpp"
#include "gate.hpp"
#include "task.hpp"

using course_test::blocks_left_by;
using course_test::counted;
using course_test::drive;
using course_test::driver;
using course_test::gate;
using course_test::live_scope;
using course_test::until_ended;
using uring::task;

namespace {

#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
constexpr int awaits_many = 10'000;  // under TSan GCC keeps no tail call: the page has the figures
#else
constexpr int awaits_many = 1'000'000;
#endif
constexpr int awaits_few = 1000;  // the stack holds so many even if each await takes some of it

task<> say(std::string& log, char what) {
  log += what;
  co_return;
}

task<> say_and_hold(std::string& log, char what, counted) {
  log += what;
  co_return;
}

// The frame that a task's awaiter knows.
struct open_awaiter : task<>::awaiter {
  explicit open_awaiter(const awaiter& given) : awaiter{given} {}
  [[nodiscard]] auto frame() const noexcept { return frame_; }
};

task<> say_around(std::string& log) {
  log += 'p';
  until_ended child{say(log, 'c')};
  co_await child;
  log += 'P';
}

task<> pass(gate& closed, counted) {
  const counted local;
  co_await closed;
}

task<> pass_below(gate& closed, counted parameter, int depth) {
  const counted local;
  until_ended below{depth == 0 ? pass(closed, parameter)
                               : pass_below(closed, parameter, depth - 1)};
  co_await below;
}

// Where the stack stands whenever a body runs.
class stack_watch {
 public:
  void look() {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if (looks_++ == 0) first_ = here;
    last_ = here;
  }
  [[nodiscard]] int looks() const noexcept { return looks_; }
  [[nodiscard]] std::uintptr_t grown_bytes() const noexcept {
    return first_ > last_ ? first_ - last_ : 0;  // it grows towards 0
  }

 private:
  int looks_ = 0;
  std::uintptr_t first_ = 0;
  std::uintptr_t last_ = 0;
};

task<> look(stack_watch& watch) {
  watch.look();
  co_return;
}

task<> look_often(stack_watch& watch, int awaits) {
  for (int i = 0; i < awaits; ++i) {
    until_ended one{look(watch)};
    co_await one;
  }
}

task<> look_deep(stack_watch& watch, int depth) {
  watch.look();
  if (depth == 0) co_return;
  until_ended below{look_deep(watch, depth - 1)};
  co_await below;
}

// Less than a byte for each await: nothing is left on the stack by any.
void check_stack(const stack_watch& watch, int awaits) {
  UNSCOPED_INFO("the stack grew by "
                << watch.grown_bytes() << " bytes in " << awaits
                << " awaits: return the handle from await_suspend, and do not resume() in it");
#if !(defined(__SANITIZE_THREAD__) && !defined(__clang__))
  REQUIRE(watch.grown_bytes() < static_cast<std::uintptr_t>(awaits));
#endif
}

}  // namespace

TEST_CASE("06.2 one await_suspend returns the task's handle, the other its continuation",
          "[06.2]") {
  std::string log;
  const live_scope before;
  const driver parent = drive(say(log, 'p'));
  auto child = std::make_unique<task<>>(say_and_hold(log, 'c', counted{}));
  const open_awaiter awaiter{std::move(*child).operator co_await()};
  const std::coroutine_handle<> next = awaiter.await_suspend(parent.handle());
  UNSCOPED_INFO("await_suspend() ran a coroutine: let it return the handle of the next one to run");
  REQUIRE(log.empty());
  UNSCOPED_INFO("when a task is awaited, the next coroutine to run is the task's");
  REQUIRE(next == awaiter.frame());
  UNSCOPED_INFO("a task's continuation is the coroutine that awaits it");
  REQUIRE(awaiter.frame().promise().continuation() == parent.handle());
  const std::coroutine_handle<> last = uring::final_awaiter{}.await_suspend(awaiter.frame());
  const bool stays = before.leaked_objects() == 1;
  if (!stays) static_cast<void>(child.release());  // to destroy it again would crash
  UNSCOPED_INFO(
      "final_awaiter destroyed the frame, which belongs to the task: it still has to give "
      "its result");
  REQUIRE(stays);
  UNSCOPED_INFO("final_awaiter ran a coroutine: let it return the handle of the next one to run");
  REQUIRE(log.empty());
  UNSCOPED_INFO("when a task has ended, the next coroutine to run is its continuation");
  CHECK(last == parent.handle());
}

TEST_CASE("06.2 awaiting a task runs it, and then the coroutine that awaited it", "[06.2]") {
  std::string log;
  const driver outermost = drive(say_around(log));
  REQUIRE(log.empty());
  UNSCOPED_INFO("a crash here means that a null handle was resumed, or one whose frame is gone");
  outermost.start();
  UNSCOPED_INFO("expected: the parent runs (p), its child (c), and the parent again (P)");
  CHECK(log == "pcP");
  UNSCOPED_INFO("the outermost coroutine was not resumed when its task had ended");
  CHECK(outermost.has_ended());
}

TEST_CASE("06.2 a task is started once", "[06.2]") {
  stack_watch watch;
  const driver outermost = drive(look(watch));
  outermost.start();
  UNSCOPED_INFO("the body should run once");
  CHECK(watch.looks() == 1);
}

TEST_CASE("06.2 a parent stays suspended until its child has ended", "[06.2]") {
  gate closed;
  const driver outermost = drive(pass_below(closed, counted{}, 2));
  outermost.start();
  UNSCOPED_INFO("the task at the bottom did not get as far as its await");
  REQUIRE(closed.somebody_waits());
  UNSCOPED_INFO("the outermost coroutine was resumed while its child still waits");
  REQUIRE_FALSE(outermost.has_ended());
  closed.open();
  UNSCOPED_INFO("the task has ended, and the coroutines above it were not resumed");
  CHECK(outermost.has_ended());
}

TEST_CASE("06.2 a frame is gone as soon as its await has ended", "[06.2]") {
  const live_scope before;
  gate closed;
  {
    const driver outermost = drive(pass(closed, counted{}));
    outermost.start();
    UNSCOPED_INFO("a parameter and a local live while the task waits");
    CHECK(before.leaked_objects() == 2);
    closed.open();
    REQUIRE(outermost.has_ended());
  }
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.2 a chain that is destroyed while it waits leaves no frame", "[06.2]") {
  const live_scope before;
  gate closed;
  std::optional<driver> outermost{drive(pass_below(closed, counted{}, 3))};
  outermost->start();
  REQUIRE(closed.somebody_waits());
  outermost.reset();
  UNSCOPED_INFO("each frame owns the task of the next one: destroying the first destroys them all");
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.2 no frame's memory is left, whether its task ended or not", "[06.2]") {
  gate closed;
  const std::ptrdiff_t ended = blocks_left_by([&] {
    const driver outermost = drive(pass_below(closed, counted{}, 3));
    outermost.start();
    closed.open();
  });
  UNSCOPED_INFO("tasks that ended left blocks behind");
  CHECK(ended == 0);
  const std::ptrdiff_t destroyed = blocks_left_by([&] {
    const driver outermost = drive(pass_below(closed, counted{}, 3));
    outermost.start();
  });
  UNSCOPED_INFO("tasks that were destroyed while they waited left blocks behind");
  CHECK(destroyed == 0);
}

TEST_CASE("06.2 a million awaits in a loop use no stack", "[06.2]") {
  for (const int awaits : {awaits_few, awaits_many}) {
    stack_watch watch;
    const driver outermost = drive(look_often(watch, awaits));
    outermost.start();
    CHECK(watch.looks() == awaits);
    check_stack(watch, awaits);
  }
}

TEST_CASE("06.2 a chain a million calls deep uses no stack", "[06.2]") {
  for (const int depth : {awaits_few, awaits_many}) {
    stack_watch watch;
    const driver outermost = drive(look_deep(watch, depth));
    outermost.start();
    CHECK(watch.looks() == depth + 1);
    check_stack(watch, depth);
    UNSCOPED_INFO("the way back did not reach the outermost coroutine");
    CHECK(outermost.has_ended());
  }
}
