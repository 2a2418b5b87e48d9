// SPDX-License-Identifier: MIT
// Task 06.1: to call a coroutine makes a frame, and a task that owns it.
#include <catch2/catch_test_macros.hpp>
#include <coroutine>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "allocations.hpp"
#include "counted.hpp"
#include "task.hpp"

using course_test::blocks_left_by;
using course_test::counted;
using course_test::live_scope;
using uring::task;

namespace {

task<> set_flag(bool& ran) {
  ran = true;
  co_await std::suspend_always{};
}

// Not inlined: Clang may put the frame of a task that nobody awaits on the stack.
[[gnu::noinline]] task<> hold(counted) {
  co_return;
}

task<int> hold_with_result(counted) {
  co_return 1;
}

// Given to a coroutine as its parameter, it is told where that coroutine's frame begins.
struct frame_watch {
  void* begins_at = nullptr;
};

struct watched_promise : uring::task_promise<void> {
  static void* operator new(std::size_t bytes, frame_watch& watch) {
    watch.begins_at = ::operator new(bytes);
    return watch.begins_at;
  }
  static void operator delete(void* memory) { ::operator delete(memory); }
};

template <typename T>
concept awaitable = requires(T&& awaited) { std::forward<T>(awaited).operator co_await(); };

}  // namespace

template <>
struct std::coroutine_traits<task<>, frame_watch&> {
  using promise_type = watched_promise;
};

namespace {

task<> tell_where(frame_watch&) {
  co_return;
}

}  // namespace

TEST_CASE("06.1 a task does not run before it is awaited", "[06.1]") {
  bool ran = false;
  {
    const task<> t = set_flag(ran);
    UNSCOPED_INFO("the body ran when it was called: does initial_suspend() return suspend_always?");
    CHECK_FALSE(ran);
    ran = false;
  }
  UNSCOPED_INFO(
      "the task's destructor ran the body: destroy() works wherever the coroutine is suspended, so "
      "do not resume() it before");
  CHECK_FALSE(ran);
}

TEST_CASE("06.1 a task has the address of its coroutine's frame", "[06.1]") {
  frame_watch frame;
  // NOLINTNEXTLINE(modernize-make-unique): that would move it
  std::unique_ptr<task<>> made{new task<>(tell_where(frame))};
  void* held = nullptr;
  static_assert(sizeof held == sizeof *made);
  // NOLINTNEXTLINE(bugprone-undefined-memory-manipulation): it only reads the handle
  std::memcpy(&held, made.get(), sizeof held);
  if (held != frame.begins_at) static_cast<void>(made.release());  // its handle leads to no frame
  UNSCOPED_INFO(
      "the handle has another address than the frame: `this` is the promise's, which is "
      "inside the frame, and from_promise(*this) finds the frame around it");
  CHECK(held == frame.begins_at);
}

TEST_CASE("06.1 a call makes one frame, and the parameter in it lives until it is destroyed",
          "[06.1]") {
  const live_scope before;
  {
    const task<> t = hold(counted{});
    UNSCOPED_INFO("the frame holds a copy of each parameter, and no other copy is left");
    CHECK(before.leaked_objects() == 1);
  }
  UNSCOPED_INFO(
      "nobody destroyed the frame: the task owns it, so its destructor has to, even if the body "
      "has not run");
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.1 a task with a result that nobody awaits destroys its frame as well", "[06.1]") {
  const live_scope before;
  {
    const task<int> t = hold_with_result(counted{});
    CHECK(before.leaked_objects() == 1);
  }
  UNSCOPED_INFO("nobody destroyed the frame of the task<int>");
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.1 a frame is one block of memory, given back with the task", "[06.1]") {
  std::ptrdiff_t with_a_task = 0;
  const std::ptrdiff_t afterwards = blocks_left_by([&] {
    std::optional<task<>> held;
    with_a_task = blocks_left_by([&] { held.emplace(hold(counted{})); });
  });
  UNSCOPED_INFO("calling a coroutine should allocate its frame, and nothing else");
  CHECK(with_a_task == 1);
  UNSCOPED_INFO("the frame's memory was not given back");
  CHECK(afterwards == 0);
}

TEST_CASE("06.1 moving a task moves the frame's ownership", "[06.1]") {
  const live_scope before;
  std::optional<task<>> first{hold(counted{})};
  {
    const task<> second{std::move(*first)};
    UNSCOPED_INFO("a move made or destroyed a frame: it only passes the handle on");
    CHECK(before.leaked_objects() == 1);
  }
  UNSCOPED_INFO("the new owner did not destroy the frame");
  CHECK(before.leaked_objects() == 0);
  INFO("two tasks destroyed one frame: the one that was moved from still has the handle");
  first.reset();
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.1 a task that was moved from has nothing to destroy", "[06.1]") {
  const live_scope before;
  {
    INFO("a task that was moved from has no frame: its destructor must look before it destroys");
    task<> first = hold(counted{});
    const task<> second{std::move(first)};
    const task<> third{hold(counted{})};
    CHECK(before.leaked_objects() == 2);
  }
  UNSCOPED_INFO("a frame is left: its owner did not destroy it");
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.1 a task that is assigned to destroys the frame that it had", "[06.1]") {
  const live_scope before;
  {
    task<> t = hold(counted{});
    t = hold(counted{});
    UNSCOPED_INFO("the frame that the task had before was leaked, or the new one was destroyed");
    CHECK(before.leaked_objects() == 1);
  }
  UNSCOPED_INFO("a frame is left after an assignment");
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.1 the task that a call returns owns that call's frame", "[06.1]") {
  const live_scope before;
  std::optional<task<>> first{hold(counted{})};
  std::optional<task<int>> second{hold_with_result(counted{})};
  UNSCOPED_INFO("two calls make two frames");
  CHECK(before.leaked_objects() == 2);
  first.reset();
  UNSCOPED_INFO("one task was destroyed, and so one frame: whose handle does each have?");
  CHECK(before.leaked_objects() == 1);
  second.reset();
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06 a task can be moved and not copied, and awaited only as an rvalue", "[06]") {
  STATIC_CHECK(std::is_nothrow_move_constructible_v<task<int>>);
  STATIC_CHECK(std::is_nothrow_move_assignable_v<task<int>>);
  STATIC_CHECK_FALSE(std::is_copy_constructible_v<task<int>>);
  STATIC_CHECK_FALSE(std::is_copy_assignable_v<task<int>>);
  STATIC_CHECK(awaitable<task<int>>);
  STATIC_CHECK_FALSE(awaitable<task<int>&>);
}
