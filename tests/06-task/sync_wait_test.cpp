// SPDX-License-Identifier: MIT
// Task 06.4: from a thread that may block into coroutines, and back.
#include "sync_wait.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "counted.hpp"
#include "task.hpp"

using course_test::counted;
using course_test::live_scope;
using uring::sync_wait;
using uring::sync_wait_all;
using uring::task;

namespace {

constexpr int rounds = 2000;

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

// Another thread, which resumes what is handed to it, once; if that never comes, it ends all the
// same.
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

// Who awaits it waits until so many do; or until the patience of the thread inside is over.
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

TEST_CASE("06.4 sync_wait throws what the task threw, and leaves nothing", "[06.4]") {
  const live_scope before;
  {
    UNSCOPED_INFO("the task's exception did not come out of sync_wait()");
    CHECK_THROWS_WITH(sync_wait(refuse("not today")), "not today");
  }
  UNSCOPED_INFO("a frame was not destroyed when sync_wait() threw");
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.4 sync_wait throws what its value throws when it is moved", "[06.4]") {
  constexpr int more_than_there_are = 10;
  UNSCOPED_INFO("a value that can be moved arrives, also if it cannot be assigned");
  CHECK_NOTHROW(sync_wait(moved(more_than_there_are)));
  for (const int moves : {0, 1, 2}) {
    UNSCOPED_INFO("it throws at move " << moves + 1 << ", on its way out of the task");
    CHECK_THROWS_WITH(sync_wait(moved(moves)), "it does not move");
  }
}

TEST_CASE("06.4 sync_wait blocks until a task has ended on another thread", "[06.4]") {
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
  UNSCOPED_INFO("they are started in their order");
  CHECK(log == std::vector{1, 2, 3, 4, 5});
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
    UNSCOPED_INFO("the first in the order of the tasks");
    CHECK_THROWS_WITH(sync_wait_all(std::move(tasks)), "number 2");
    UNSCOPED_INFO("the tasks behind the one that threw were not run to their end");
    CHECK(log == std::vector{1, 2, 3, 4});
  }
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.4 sync_wait_all of nothing is nothing", "[06.4]") {
  CHECK(sync_wait_all(std::vector<task<int>>{}).empty());
  CHECK(sync_wait(answer()) == 42);
}
