// SPDX-License-Identifier: MIT
// Task 12.5: work that blocks is done elsewhere, and its coroutine comes home.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "blocking_pool.hpp"
#include "counted.hpp"
#include "feature.hpp"
#include "io_context.hpp"
#include "operations.hpp"
#include "patience.hpp"
#include "ring_modes.hpp"
#include "scripted_calls.hpp"
#include "task.hpp"
#include "watchdog.hpp"

using namespace std::chrono_literals;
using course_test::counted;
using course_test::watchdog;
using uring::blocking_pool;
using uring::io_context;
using uring::task;

namespace {

using thread_id = std::thread::id;

struct where {
  thread_id operator()() const { return std::this_thread::get_id(); }
};

struct whereabouts {
  thread_id work;
  thread_id after;
};

task<whereabouts> look_around(blocking_pool& pool) {
  const thread_id there = co_await pool.invoke(where{});
  co_return whereabouts{.work = there, .after = std::this_thread::get_id()};
}

struct failure {
  int operator()() const { throw std::runtime_error{"the work has failed"}; }
};

struct caught {
  std::string text = "nothing was thrown";
  thread_id where;
};

task<caught> catch_failure(blocking_pool& pool) {
  caught seen;
  try {
    (void)co_await pool.invoke(failure{});
  } catch (const std::runtime_error& error) {
    seen.text = error.what();
  }
  seen.where = std::this_thread::get_id();
  co_return seen;
}

// Blocks its thread until somebody opens it, but not forever.
class door {
 public:
  [[nodiscard]] bool wait() {
    return opened_.get_future().wait_for(std::chrono::seconds{3} * course_test::patience()) ==
           std::future_status::ready;
  }
  void open() { opened_.set_value(); }

 private:
  std::promise<void> opened_;
};

struct wait_for {
  door* closed;
  bool operator()() const { return closed->wait(); }
};

task<bool> wait_elsewhere(blocking_pool& pool, door& closed) {
  const counted frame;
  const bool was_opened = co_await pool.invoke(wait_for{&closed});
  co_return was_opened;
}

task<> open_soon(io_context& context, door& closed) {
  for (int turn = 0; turn < 3; ++turn) (void)co_await uring::nop_op(context);
  closed.open();
}

struct add {
  std::atomic<int>* sum;
  int number;
  int operator()() const {
    *sum += number;
    return number;
  }
};

task<> add_elsewhere(blocking_pool& pool, std::atomic<int>& sum, int number, int& home_sum) {
  const int came = co_await pool.invoke(add{&sum, number});
  home_sum += came;  // without a lock: every coroutine is at home here
}

struct boxed_number {
  std::unique_ptr<int> operator()() const { return std::make_unique<int>(7); }
};
struct nothing {
  void operator()() const {}
};
struct owning {
  std::unique_ptr<int> number;
  int operator()() { return *number; }
};

task<int> invoke_several(blocking_pool& pool) {
  const std::unique_ptr<int> boxed = co_await pool.invoke(boxed_number{});
  co_await pool.invoke(nothing{});
  owning work{std::make_unique<int>(35)};  // named: beside co_await GCC 12 destroys it twice
  const int owned = co_await pool.invoke(std::move(work));
  co_return *boxed + owned;
}

}  // namespace

TEST_CASE("12.5 the work runs on the pool, and its coroutine comes home", "[12.5]") {
  course_test::require_feature("msg_ring");
  course_test::require_feature("defer_taskrun");
  const watchdog deadline{5s, "the coroutine went to the pool, and no message brings it home"};
  for (const uring::ring_options& options : course_test::all_rings) {
    io_context context{options};
    blocking_pool pool{context, 1};
    const whereabouts seen = context.run(look_around(pool));
    UNSCOPED_INFO("the work has blocked the loop's own thread: schedule() it first");
    CHECK(seen.work != std::this_thread::get_id());
    UNSCOPED_INFO("what comes after invoke() runs on the pool, beside the loop: co_await way_home");
    CHECK(seen.after == std::this_thread::get_id());
  }
}

TEST_CASE("12.5 the message is sent when the handle is stored", "[12.5]") {
  course_test::require_feature("msg_ring");
  const watchdog deadline{5s, "the coroutine went to the pool, and no message brings it home"};
  io_context context;
  blocking_pool pool{context, 1};
  const course_test::slow_unlocks slow{50ms};  // send() returns long after the message has come
  UNSCOPED_INFO(
      "the loop resumes what is in traveler_ as soon as the message is there: store first, then "
      "send. A handle that nobody has stored is null, and to resume it is a crash");
  const whereabouts seen = context.run(look_around(pool));
  UNSCOPED_INFO("what comes after invoke() runs on the pool, beside the loop: co_await way_home");
  CHECK(seen.after == std::this_thread::get_id());
}

TEST_CASE("12.5 an exception of the work is thrown at home", "[12.5]") {
  course_test::require_feature("msg_ring");
  const watchdog deadline{5s,
                          "the coroutine went to the pool, and no message brings it home: "
                          "co_await home follows even if the work has thrown"};
  io_context context;
  blocking_pool pool{context, 1};
  const caught seen = context.run(catch_failure(pool));
  UNSCOPED_INFO("an exception is a result like any other, and has to be brought home");
  CHECK(seen.text == "the work has failed");
  UNSCOPED_INFO(
      "the coroutine is still on the pool's thread, and no message brings it home: as_outcome() "
      "keeps the exception in invoke(), and co_await home follows even if the work has thrown");
  CHECK(seen.where == std::this_thread::get_id());
}

TEST_CASE("12.5 the loop goes on while the work blocks", "[12.5]") {
  course_test::require_feature("msg_ring");
  const watchdog deadline{10s, "the coroutine went to the pool, and no message brings it home"};
  door closed;
  io_context context;
  blocking_pool pool{context, 1};
  context.spawn(open_soon(context, closed));
  const bool was_opened = context.run(wait_elsewhere(pool, closed));
  UNSCOPED_INFO("the work has waited for another task of the loop, whose thread it blocked");
  CHECK(was_opened);
}

TEST_CASE("12.5 many come home at the same time", "[12.5]") {
  course_test::require_feature("msg_ring");
  course_test::require_feature("defer_taskrun");
  const watchdog deadline{10s, "a coroutine went to the pool, and no message brings it home"};
  constexpr int count = 500;
  for (const uring::ring_options& options : course_test::all_rings) {
    std::atomic<int> sum{0};
    int home_sum = 0;
    io_context context{options};
    blocking_pool pool{context, 3};
    for (int i = 1; i <= count; ++i) context.spawn(add_elsewhere(pool, sum, i, home_sum));
    context.run();
    CHECK(sum == count * (count + 1) / 2);
    CHECK(home_sum == sum);
  }
}

TEST_CASE("12.5 work may own things, and return any kind of result", "[12.5]") {
  course_test::require_feature("msg_ring");
  const watchdog deadline{5s, "the coroutine went to the pool, and no message brings it home"};
  io_context context;
  blocking_pool pool{context, 2};
  CHECK(context.run(invoke_several(pool)) == 42);
}

namespace {

task<> stop_and_open(io_context& context, door& closed) {
  (void)co_await uring::nop_op(context);
  context.stop();
  // Waits, canceled again and again, as long as it takes the loop to hear of the stop.
  for (int turn = 0; turn < 3; ++turn) (void)co_await uring::timeout_op(context, 1h);
  CHECK(counted::live() == 1);
  closed.open();
}

}  // namespace

TEST_CASE("12 a stop waits for work that is under way") {
  course_test::require_feature("msg_ring");
  const watchdog deadline{10s, "the work was done, and its coroutine has not come home"};
  door closed;
  io_context context;
  blocking_pool pool{context, 1};
  context.spawn(stop_and_open(context, closed));
  UNSCOPED_INFO("work cannot be canceled, and it is not lost either");
  CHECK(context.run(wait_elsewhere(pool, closed)));
  CHECK(counted::live() == 0);
}

namespace {

task<> wait_and_drop(blocking_pool& pool, door& closed) {
  (void)co_await wait_elsewhere(pool, closed);
}

task<> fail_soon(io_context& context, door& closed) {
  co_await open_soon(context, closed);
  throw std::runtime_error{"another task"};
}

}  // namespace

TEST_CASE("12 an error of another task waits for work that is under way") {
  course_test::require_feature("msg_ring");
  const watchdog deadline{10s, "the work was done, and its coroutine has not come home"};
  door closed;
  std::string said;
  io_context context;
  blocking_pool pool{context, 1};
  context.spawn(wait_and_drop(pool, closed));
  try {
    context.run(fail_soon(context, closed));
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  CHECK(said == "another task");
  CHECK(counted::live() == 0);
}

TEST_CASE("12 a context that nobody runs ends after work that is under way") {
  course_test::require_feature("msg_ring");
  const watchdog deadline{10s, "the work was done, and its coroutine has not come home"};
  door closed;
  {
    io_context context;
    blocking_pool pool{context, 1};
    context.spawn(wait_and_drop(pool, closed));
    CHECK(counted::live() == 1);
    closed.open();
  }
  CHECK(counted::live() == 0);
}

TEST_CASE("12 a frame that somebody works for is not destroyed") {
  io_context context;
  context.expect_message();
  CHECK(context.in_flight() == 1);
  UNSCOPED_INFO("another thread has the frame: it may not be destroyed, whatever the kernel says");
  CHECK_FALSE(context.close());
  context.message_has_come();
  CHECK(context.close());
}
