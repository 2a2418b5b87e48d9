// SPDX-License-Identifier: MIT
// Task 06.4: ordinary code starts coroutines, and blocks until they have ended.
#include "sync_wait.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "counted.hpp"
#include "deadline.hpp"
#include "task.hpp"

using course_test::counted;
using course_test::deadline;
using course_test::live_scope;
using uring::sync_wait;
using uring::sync_wait_all;
using uring::task;

namespace {

constexpr int rounds = 2000;
constexpr std::chrono::seconds patience{10};
constexpr std::chrono::milliseconds a_while{
    100};  // on another thread, so that this one can go wrong meanwhile

task<int> answer() {
  co_return 42;
}
task<> nothing() {
  co_return;
}
task<std::unique_ptr<int>> boxed() {
  co_return std::make_unique<int>(7);
}
task<int&> itself(int& number) {
  co_return number;
}

task<int> refuse(std::string why, counted = {}) {
  if (!why.empty()) throw std::runtime_error{why};
  co_return 0;
}

// Moved more often than it may be: the last time it throws. Nothing can be assigned to it.
class unmovable_at_last {
 public:
  explicit unmovable_at_last(int moves) noexcept : moves_left_{moves} {}
  // NOLINTNEXTLINE(*exception-escape, *noexcept-move-constructor): to throw is what it is for
  unmovable_at_last(unmovable_at_last&& other) : moves_left_{other.moves_left_ - 1} {
    if (moves_left_ < 0) throw std::runtime_error{"it does not move"};
  }

 private:
  const int moves_left_;
};

task<unmovable_at_last> moved(int moves) {
  co_return unmovable_at_last{moves};
}

task<int> block_inside() {
  co_return sync_wait(answer());
}

// Another thread, which resumes the coroutine that awaits it, once. It ends even if none does.
class helper_thread {
 public:
  helper_thread() : thread_{[this] { resume_one(); }} {}
  helper_thread(helper_thread&&) = delete;
  ~helper_thread() {
    {
      const std::lock_guard lock{mutex_};
      nobody_comes_ = waiting_ == nullptr;
      changed_.notify_one();
    }
    thread_.join();
  }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    const std::lock_guard lock{mutex_};
    waiting_ = waiting;
    changed_.notify_one();
  }
  void await_resume() const noexcept {}

 private:
  void resume_one() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return waiting_ != nullptr || nobody_comes_; });
    const std::coroutine_handle<> resumed = waiting_;
    lock.unlock();
    if (resumed) resumed.resume();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::coroutine_handle<> waiting_;
  bool nobody_comes_ = false;
  std::thread thread_;  // last: it uses the others
};

task<std::thread::id> move_to(helper_thread& other, counted) {
  co_await other;
  co_return std::this_thread::get_id();
}

task<int> refuse_on(helper_thread& other) {
  co_await other;
  const int never = co_await refuse("from another thread");
  co_return never;
}

task<int> note(std::vector<int>& log, int number) {
  log.push_back(number);
  co_return number * 10;
}

task<int> note_and_refuse(std::vector<int>& log, int number) {
  log.push_back(number);
  const int never = co_await refuse("number " + std::to_string(number));
  co_return never;
}

// Coroutines that await it wait until enough of them do, or until the thread inside gives up.
class barrier {
 public:
  explicit barrier(std::size_t expected)
      : expected_{expected}, impatient_{[this] { open_at_last(); }} {}
  barrier(barrier&&) = delete;
  ~barrier() { impatient_.join(); }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> waiting) {
    const std::lock_guard lock{mutex_};
    if (gave_up_) return false;
    waiting_.push_back(waiting);
    if (waiting_.size() == expected_) complete_.notify_one();
    return true;
  }
  void await_resume() const noexcept {}

  [[nodiscard]] bool gave_up() {
    const std::lock_guard lock{mutex_};
    return gave_up_;
  }

 private:
  void open_at_last() {
    std::unique_lock lock{mutex_};
    gave_up_ = !complete_.wait_for(lock, std::chrono::seconds{2},
                                   [this] { return waiting_.size() == expected_; });
    const std::vector<std::coroutine_handle<>> resumed = std::exchange(waiting_, {});
    lock.unlock();
    for (const std::coroutine_handle<> each : resumed) each.resume();
  }

  std::size_t expected_;
  bool gave_up_ = false;
  std::mutex mutex_;
  std::condition_variable complete_;
  std::vector<std::coroutine_handle<>> waiting_;
  std::thread impatient_;  // last: it uses the others
};

// A local of a coroutine, which awaits it: another thread resumes the coroutine after a while. If
// the frame is destroyed before, the program ends, for the blocked thread would never wake.
class late_resume {
 public:
  explicit late_resume(std::thread& resumer) : resumer_{resumer} {}
  late_resume(late_resume&&) = delete;
  ~late_resume() {
    if (is_waiting_) std::abort();
  }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    is_waiting_ = true;
    std::thread& resumer = resumer_;  // *this may be gone once the thread runs
    resumer = std::thread{[waiting] {
      std::this_thread::sleep_for(a_while);
      waiting.resume();
    }};
  }
  void await_resume() noexcept { is_waiting_ = false; }

 private:
  std::thread& resumer_;
  bool is_waiting_ = false;
};

task<int> come_late(std::thread& resumer, int number) {
  late_resume later{resumer};
  co_await later;
  co_return number;
}

// A result that takes a while to leave an object that it was moved out of, on the thread that ran
// the task. To move it while that goes on ends the program: that thread still uses the frame.
class slow_to_leave {
 public:
  slow_to_leave() = default;
  slow_to_leave(slow_to_leave&& other) noexcept : made_on_{other.made_on_} {
    if (is_leaving_) std::abort();
    other.was_moved_ = true;
  }
  ~slow_to_leave() {
    if (!was_moved_ || std::this_thread::get_id() != made_on_) return;
    is_leaving_ = true;
    std::this_thread::sleep_for(a_while);
    is_leaving_ = false;
  }

 private:
  static inline std::atomic<bool> is_leaving_ = false;
  std::thread::id made_on_ = std::this_thread::get_id();
  bool was_moved_ = false;
};

task<slow_to_leave> come_slowly(helper_thread& other) {
  co_await other;
  co_return slow_to_leave{};
}

task<int> meet(barrier& all, int number) {
  co_await all;
  co_return number;
}

}  // namespace

TEST_CASE("06.4 sync_wait returns the task's result", "[06.4]") {
  CHECK(sync_wait(answer()) == 42);
  sync_wait(nothing());
  CHECK(*sync_wait(boxed()) == 7);
  int number = 1;
  sync_wait(itself(number)) = 5;
  CHECK(number == 5);
}

TEST_CASE("06.4 sync_wait throws the task's exception, and leaves no frame", "[06.4]") {
  const live_scope before;
  {
    UNSCOPED_INFO("the task's exception did not come out of sync_wait()");
    CHECK_THROWS_WITH(sync_wait(refuse("not today")), "not today");
  }
  UNSCOPED_INFO("a frame was not destroyed when sync_wait() threw");
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.4 sync_wait throws if its value throws when it is moved", "[06.4]") {
  constexpr int more_than_there_are = 10;
  UNSCOPED_INFO("a value that can be moved arrives even if it cannot be assigned");
  CHECK_NOTHROW(sync_wait(moved(more_than_there_are)));
  for (const int moves : {0, 1, 2}) {
    UNSCOPED_INFO("it throws at move " << moves + 1 << ", on its way out of the task");
    CHECK_THROWS_WITH(sync_wait(moved(moves)), "it does not move");
  }
}

TEST_CASE("06.4 the frame of sync_wait lives until a task has ended on another thread", "[06.4]") {
  INFO(
      "the frame was destroyed while its task still waits: it must live until ended.wait() has "
      "returned");
  std::thread resumer;
  const int result = sync_wait(come_late(resumer, 42));
  resumer.join();
  CHECK(result == 42);
}

TEST_CASE("06.4 sync_wait touches nothing before another thread is done with it", "[06.4]") {
  INFO(
      "only ended.wait() says that the other thread is done with the frame and the result: a loop "
      "that looks at the result reads too early, or the same old value for ever");
  const deadline soon{patience / 2};
  helper_thread other;
  static_cast<void>(sync_wait(come_slowly(other)));
}

TEST_CASE("06.4 sync_wait blocks until a task has ended on another thread", "[06.4]") {
  INFO("sync_wait() blocks in ended.wait(), until the notifier has called arrive()");
  const deadline soon{patience};
  for (int i = 0; i < rounds; ++i) {
    const live_scope before;
    std::thread::id ended_on;
    {
      helper_thread other;
      ended_on = sync_wait(move_to(other, counted{}));
      UNSCOPED_INFO("sync_wait() returned before the frame was gone");
      REQUIRE(before.leaked_objects() == 0);
    }
    UNSCOPED_INFO("sync_wait() did not wait for the other thread");
    REQUIRE(ended_on != std::this_thread::get_id());
  }
}

TEST_CASE("06.4 an exception from another thread comes out of sync_wait", "[06.4]") {
  INFO("sync_wait() blocks in ended.wait(), until the notifier has called arrive()");
  const deadline soon{patience};
  helper_thread other;
  CHECK_THROWS_WITH(sync_wait(refuse_on(other)), "from another thread");
}

TEST_CASE("06.4 sync_wait inside a coroutine throws, and says what to do instead", "[06.4]") {
  UNSCOPED_INFO("it would block the thread that has to finish the task");
  CHECK_THROWS_WITH(sync_wait(block_inside()), Catch::Matchers::EndsWith("co_await it"));
  UNSCOPED_INFO("afterwards, ordinary code may wait again");
  CHECK(sync_wait(answer()) == 42);
}

TEST_CASE("06.4 sync_wait_all gives all results, in the order of the tasks", "[06.4]") {
  std::vector<int> log;
  std::vector<task<int>> tasks;
  for (int i = 1; i <= 5; ++i) tasks.push_back(note(log, i));
  const std::vector<int> results = sync_wait_all(std::move(tasks));
  UNSCOPED_INFO("each task's result belongs at its place");
  CHECK(results == std::vector{10, 20, 30, 40, 50});
  UNSCOPED_INFO("the tasks are started in their order");
  CHECK(log == std::vector{1, 2, 3, 4, 5});
}

TEST_CASE("06.4 the frames of sync_wait_all live until the last task has ended", "[06.4]") {
  INFO(
      "a frame was destroyed while its task still waits: all frames must live until ended.wait() "
      "has returned");
  std::thread resumers[2];
  std::vector<task<int>> tasks;
  tasks.push_back(come_late(resumers[0], 1));
  tasks.push_back(come_late(resumers[1], 2));
  const std::vector<int> results = sync_wait_all(std::move(tasks));
  for (std::thread& each : resumers) each.join();
  CHECK(results == std::vector{1, 2});
}

TEST_CASE("06.4 sync_wait_all starts every task before it waits for any", "[06.4]") {
  barrier all{3};
  std::vector<task<int>> tasks;
  for (int i = 1; i <= 3; ++i) tasks.push_back(meet(all, i));
  const std::vector<int> results = sync_wait_all(std::move(tasks));
  CHECK(results == std::vector{1, 2, 3});
  UNSCOPED_INFO("a task was waited for before the next one was started");
  CHECK_FALSE(all.gave_up());
}

TEST_CASE("06.4 sync_wait_all throws the first exception after all have ended", "[06.4]") {
  const live_scope before;
  {
    std::vector<int> log;
    std::vector<task<int>> tasks;
    tasks.push_back(note(log, 1));
    tasks.push_back(note_and_refuse(log, 2));
    tasks.push_back(note(log, 3));
    tasks.push_back(note_and_refuse(log, 4));
    UNSCOPED_INFO("the exception is that of the first task in their order");
    CHECK_THROWS_WITH(sync_wait_all(std::move(tasks)), "number 2");
    UNSCOPED_INFO("the tasks after the one that threw were not run to their end");
    CHECK(log == std::vector{1, 2, 3, 4});
  }
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.4 sync_wait_all of no tasks gives no results", "[06.4]") {
  CHECK(sync_wait_all(std::vector<task<int>>{}).empty());
  CHECK(sync_wait(answer()) == 42);
}
