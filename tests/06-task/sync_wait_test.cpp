// SPDX-License-Identifier: MIT
// Task 06.4: ordinary code starts coroutines, and blocks until they have ended.
#include "sync_wait.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocations.hpp"
#include "counted.hpp"
#include "deadline.hpp"
#include "patience.hpp"
#include "small_tasks.hpp"
#include "task.hpp"
#include "watchdog.hpp"

using course_test::answer;
using course_test::boxed;
using course_test::counted;
using course_test::deadline;
using course_test::itself;
using course_test::live_scope;
using course_test::nothing;
using course_test::watchdog;
using uring::countdown;
using uring::sync_wait;
using uring::sync_wait_all;
using uring::sync_wait_frame;
using uring::task;

namespace {

constexpr int rounds = 2000;
constexpr std::chrono::seconds long_enough{10};
constexpr std::chrono::milliseconds a_while{
    100};  // on another thread, so that this one can go wrong meanwhile

task<int> refuse(std::string why, counted = {}) {
  if (!why.empty()) throw std::runtime_error{why};
  co_return 0;
}

task<int> throw_a_number(int number) {
  throw number;
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

task<std::thread::id> thread_of_its_body() {
  co_return std::this_thread::get_id();
}

// Counts what sync_wait_all() may not need of a result: to be made from nothing, and to be copied.
struct plain_result {
  plain_result() { ++made; }
  explicit plain_result(int was_given) : number{was_given} {}
  plain_result(const plain_result& other) : number{other.number} { ++copies; }
  plain_result(plain_result&& other) noexcept = default;
  plain_result& operator=(const plain_result&) = default;

  int number = 0;
  static inline int made = 0;
  static inline int copies = 0;
};

task<plain_result> plain(int number) {
  co_return plain_result{number};
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

task<int> note(std::vector<int>& log, int number, counted /*lives in the frame*/ = {}) {
  log.push_back(number);
  co_return number * 10;
}

task<int> note_and_refuse(std::vector<int>& log, int number, counted /*as above*/ = {}) {
  log.push_back(number);
  const int never = co_await refuse("number " + std::to_string(number));
  co_return never;
}

// Notes, when it starts, how many blocks operator new has given out.
task<int> note_blocks(std::size_t& blocks) {
  blocks = course_test::allocations();
  co_return 0;
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
    gave_up_ = !complete_.wait_for(lock, std::chrono::seconds{2} * course_test::patience(),
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

std::thread resume_after_a_while(std::coroutine_handle<> waiting) {
  return std::thread{[waiting] {
    std::this_thread::sleep_for(a_while);
    waiting.resume();
  }};
}

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
    resumer = resume_after_a_while(waiting);
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

// Notes how many blocks operator new has given out when it begins to wait, and when it goes on.
class late_count {
 public:
  late_count(std::thread& resumer, std::size_t& before) : resumer_{resumer}, before_{before} {}
  late_count(late_count&&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) const {
    std::thread& resumer = resumer_;  // *this may be gone once the thread runs
    std::size_t& before = before_;
    resumer = resume_after_a_while(waiting);
    before = course_test::allocations();
  }
  void await_resume() const noexcept {}

 private:
  std::thread& resumer_;
  std::size_t& before_;
};

task<int> note_blocks_late(std::thread& resumer, std::size_t& before, std::size_t& after) {
  late_count wait{resumer, before};
  co_await wait;
  after = course_test::allocations();
  co_return 0;
}

// What a task waits for until another thread resumes it after a while, unless the frame that waits
// is destroyed before that.
class distant_event {
 public:
  class awaiter;

  distant_event() = default;
  distant_event(distant_event&&) = delete;
  ~distant_event() {
    if (thread_.joinable()) thread_.join();
  }

  awaiter operator co_await() noexcept;
  [[nodiscard]] bool was_abandoned() {
    const std::lock_guard lock{mutex_};
    return was_abandoned_;
  }

 private:
  void resume_late(std::coroutine_handle<> waiting) {
    std::unique_lock lock{mutex_};
    if (abandoned_.wait_for(lock, a_while, [this] { return was_abandoned_; })) return;
    is_awaited_ = false;
    lock.unlock();
    waiting.resume();
  }

  std::mutex mutex_;
  std::condition_variable abandoned_;
  bool is_awaited_ = false;
  bool was_abandoned_ = false;
  std::thread thread_;
};

class distant_event::awaiter {
 public:
  explicit awaiter(distant_event& event) noexcept : event_{event} {}
  awaiter(awaiter&&) = delete;
  ~awaiter() {
    const std::lock_guard lock{event_.mutex_};
    event_.was_abandoned_ = event_.is_awaited_;
    event_.abandoned_.notify_one();
  }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    distant_event& event = event_;
    event.is_awaited_ = true;
    event.thread_ = std::thread{[&event, waiting] { event.resume_late(waiting); }};
  }
  void await_resume() const noexcept {}

 private:
  distant_event& event_;
};

distant_event::awaiter distant_event::operator co_await() noexcept {
  return awaiter{*this};
}

task<int> await_event(distant_event& event, int number) {
  co_await event;
  co_return number;
}

// Keeps the thread that calls sync_wait() inside start() until another thread, which runs the task,
// destroys a moved-from object: a chosen one of those that the value leaves behind on its way out.
class slow_departure {
 public:
  explicit slow_departure(int chosen) noexcept : chosen_{chosen} {}
  slow_departure(slow_departure&&) = delete;
  ~slow_departure() {
    if (thread_.joinable()) thread_.join();
  }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    std::unique_lock lock{mutex_};
    thread_ = std::thread{[this, waiting] {
      waiting.resume();
      const std::lock_guard end{mutex_};
      has_ended_ = true;
      changed_.notify_all();
    }};
    changed_.wait_for(lock, long_enough, [this] { return is_leaving_ || has_ended_; });
  }
  void await_resume() const noexcept {}

  // A moved-from object is destroyed on the thread that runs the task.
  void leave() {
    std::unique_lock lock{mutex_};
    if (++departures_ != chosen_) return;
    is_leaving_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, a_while, [this] { return was_taken_early_; });
    is_leaving_ = false;
  }

  // The value is taken on the thread that blocks. If that is too early, the task may still end.
  void take() {
    std::unique_lock lock{mutex_};
    if (!is_leaving_) return;
    was_taken_early_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, long_enough, [this] { return has_ended_; });
  }

  [[nodiscard]] bool came() {
    const std::lock_guard lock{mutex_};
    return departures_ >= chosen_;
  }
  [[nodiscard]] bool was_taken_early() {
    const std::lock_guard lock{mutex_};
    return was_taken_early_;
  }

 private:
  const int chosen_;
  int departures_ = 0;
  bool is_leaving_ = false;
  bool was_taken_early_ = false;
  bool has_ended_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

// A result that tells a slow_departure when it moves on.
class departing {
 public:
  explicit departing(slow_departure& departure) noexcept : departure_{&departure} {}
  // NOLINTNEXTLINE(bugprone-exception-escape): a mutex that is not locked twice throws nothing
  departing(departing&& other) noexcept : departure_{other.departure_}, made_on_{other.made_on_} {
    other.was_moved_ = true;
    if (std::this_thread::get_id() != made_on_) departure_->take();
  }
  ~departing() {
    if (was_moved_ && std::this_thread::get_id() == made_on_) departure_->leave();
  }

 private:
  slow_departure* departure_;
  std::thread::id made_on_ = std::this_thread::get_id();
  bool was_moved_ = false;
};

task<departing> depart(slow_departure& departure) {
  co_await departure;
  co_return departing{departure};
}

using waiting_frame = std::coroutine_handle<sync_wait_frame::promise_type>;

struct keep_handle {
  waiting_frame& kept;
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(waiting_frame frame) const noexcept { kept = frame; }
  void await_resume() const noexcept {}
};

// Waits forever, and gives the handle of its frame.
sync_wait_frame wait_for_ever(waiting_frame& own) {
  const keep_handle keep{own};
  co_await keep;
}

// Ends a test whose sync_wait() does not return.
struct sync_wait_returns : watchdog {
  sync_wait_returns()
      : watchdog{long_enough,
                 "sync_wait() does not return: it makes the frame, starts it, and only then calls "
                 "ended.wait(), which returns when the notifier has called arrive()"} {}
};

// Calls sync_wait_all(), and ends the test if that does not return.
std::vector<int> wait_for_all(std::vector<task<int>> tasks) {
  const watchdog stops{std::chrono::seconds{5},
                       "sync_wait_all() does not return: it needs a start() for every task, even "
                       "after one has failed, and one countdown for all tasks, which begins at "
                       "their number, and one wait(), after the last start()"};
  return sync_wait_all(std::move(tasks));
}

}  // namespace

TEST_CASE("06.4 sync_wait returns the task's result", "[06.4]") {
  const sync_wait_returns soon;
  CHECK(sync_wait(answer()) == 42);
  sync_wait(nothing());
  CHECK(*sync_wait(boxed()) == 7);
  int number = 1;
  sync_wait(itself(number)) = 5;
  CHECK(number == 5);
}

TEST_CASE("06.4 a task begins on the thread that waits for it", "[06.4]") {
  const sync_wait_returns soon;
  const std::thread::id here = std::this_thread::get_id();
  UNSCOPED_INFO("the body began on another thread: call start() on the thread that waits");
  CHECK(sync_wait(thread_of_its_body()) == here);
  std::vector<task<std::thread::id>> tasks;
  tasks.push_back(thread_of_its_body());
  tasks.push_back(thread_of_its_body());
  UNSCOPED_INFO("a body began on another thread: call each start() on the thread that waits");
  const std::vector<std::thread::id> began_on = sync_wait_all(std::move(tasks));
  CHECK(began_on == std::vector{here, here});
}

TEST_CASE("06.4 sync_wait throws the task's exception, and leaves no frame", "[06.4]") {
  const sync_wait_returns soon;
  const live_scope before;
  {
    UNSCOPED_INFO("the task's exception did not come out of sync_wait()");
    CHECK_THROWS_WITH(sync_wait(refuse("not today")), "not today");
  }
  UNSCOPED_INFO("a frame was not destroyed when sync_wait() threw");
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.4 sync_wait throws if its value throws when it is moved", "[06.4]") {
  const sync_wait_returns soon;
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
      "that looks at the result reads too early, or the same old value forever");
  const deadline soon{long_enough / 2};
  helper_thread other;
  static_cast<void>(sync_wait(come_slowly(other)));
}

TEST_CASE("06.4 sync_wait returns only when the frame has ended, not when the result is there",
          "[06.4]") {
  const watchdog stops{
      long_enough, "sync_wait() blocks in ended.wait(), until the notifier has called arrive()"};
  bool came = true;
  for (int chosen = 1; came; ++chosen) {
    slow_departure departure{chosen};
    static_cast<void>(sync_wait(depart(departure)));
    UNSCOPED_INFO(
        "sync_wait() returned while the frame still ran: the result is there before the frame has "
        "ended, so always wait for the countdown");
    REQUIRE_FALSE(departure.was_taken_early());
    came = departure.came();
  }
}

TEST_CASE("06.4 the notifier writes nothing into a frame that may be gone", "[06.4]") {
  countdown ended{1};
  waiting_frame own;
  sync_wait_frame frame = wait_for_ever(own);
  frame.start(ended);
  sync_wait_frame::promise_type::notifier{}.await_suspend(own);
  UNSCOPED_INFO(
      "the notifier wrote into the frame: once arrive() is called, the blocked thread may destroy "
      "that frame, so arrive() comes last, and `ended` stays as it is");
  CHECK(own.promise().ended == &ended);
}

TEST_CASE("06.4 sync_wait blocks until a task has ended on another thread", "[06.4]") {
  INFO("sync_wait() blocks in ended.wait(), until the notifier has called arrive()");
  const deadline soon{long_enough};
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
  const deadline soon{long_enough};
  helper_thread other;
  CHECK_THROWS_WITH(sync_wait(refuse_on(other)), "from another thread");
}

TEST_CASE("06.4 sync_wait inside a coroutine throws, and says what to do instead", "[06.4]") {
  const sync_wait_returns soon;
  UNSCOPED_INFO("it would block the thread that has to finish the task");
  CHECK_THROWS_WITH(sync_wait(block_inside()), Catch::Matchers::EndsWith("co_await it"));
  UNSCOPED_INFO("afterwards, ordinary code may wait again");
  CHECK(sync_wait(answer()) == 42);
}

TEST_CASE("06.4 sync_wait_all gives all results, in the order of the tasks", "[06.4]") {
  const live_scope before;
  std::vector<int> log;
  std::vector<task<int>> tasks;
  for (int i = 1; i <= 5; ++i) tasks.push_back(note(log, i));
  std::vector<int> results;
  {
    INFO(
        "a result, a frame or the countdown moved, or was destroyed, before the last task had "
        "ended");
    results = wait_for_all(std::move(tasks));
  }
  UNSCOPED_INFO("each task's result belongs at its place");
  CHECK(results == std::vector{10, 20, 30, 40, 50});
  UNSCOPED_INFO("the tasks are started in their order");
  CHECK(log == std::vector{1, 2, 3, 4, 5});
  UNSCOPED_INFO("a frame was not destroyed when sync_wait_all() returned: an object must own it");
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.4 sync_wait_all moves each result, and makes none", "[06.4]") {
  std::vector<task<plain_result>> tasks;
  tasks.push_back(plain(1));
  tasks.push_back(plain(2));
  plain_result::made = plain_result::copies = 0;
  const std::vector<plain_result> results = sync_wait_all(std::move(tasks));
  REQUIRE(results.size() == 2);
  CHECK((results[0].number == 1 && results[1].number == 2));
  UNSCOPED_INFO(
      "a result was made from nothing, which not every type allows: push_back() what take() "
      "returns");
  CHECK(plain_result::made == 0);
  UNSCOPED_INFO(
      "a result was copied, which not every type allows: push_back() what take() returns");
  CHECK(plain_result::copies == 0);
}

TEST_CASE("06.4 sync_wait_all makes every frame before it starts the first task", "[06.4]") {
  std::size_t when_the_first_started = 0;
  std::size_t when_the_last_started = 0;
  std::vector<task<int>> tasks;
  tasks.push_back(note_blocks(when_the_first_started));
  tasks.push_back(answer());
  tasks.push_back(note_blocks(when_the_last_started));
  static_cast<void>(wait_for_all(std::move(tasks)));
  UNSCOPED_INFO(
      "await_into() made a frame when a task had started. That may throw std::bad_alloc, and the "
      "task that runs would then use a result and a countdown that are gone: make all frames in "
      "one loop, and start them in another");
  CHECK(when_the_last_started == when_the_first_started);
}

TEST_CASE("06.4 sync_wait_all makes nothing between the last start and the wait", "[06.4]") {
  std::thread resumer;
  std::size_t when_it_waited = 0;
  std::size_t when_it_went_on = 0;
  std::vector<task<int>> tasks;
  tasks.push_back(note_blocks_late(resumer, when_it_waited, when_it_went_on));
  static_cast<void>(sync_wait_all(std::move(tasks)));  // no watchdog: its thread takes memory
  resumer.join();
  UNSCOPED_INFO(
      "memory was taken while a task ran. That may throw std::bad_alloc, and the task would then "
      "use a result and a countdown that are gone: after the first start(), call nothing that may "
      "throw before ended.wait()");
  CHECK(when_it_went_on == when_it_waited);
}

TEST_CASE("06.4 the frames of sync_wait_all live until the last task has ended", "[06.4]") {
  INFO(
      "a frame was destroyed while its task still waits, or a result or the countdown moved: all "
      "of them must stay where they are until ended.wait() has returned");
  std::thread resumers[2];
  std::vector<task<int>> tasks;
  tasks.push_back(come_late(resumers[0], 1));
  tasks.push_back(come_late(resumers[1], 2));
  const std::vector<int> results = wait_for_all(std::move(tasks));
  for (std::thread& each : resumers) each.join();
  CHECK(results == std::vector{1, 2});
}

TEST_CASE("06.4 sync_wait_all starts every task before it waits for any", "[06.4]") {
  barrier all{3};
  std::vector<task<int>> tasks;
  for (int i = 1; i <= 3; ++i) tasks.push_back(meet(all, i));
  const std::vector<int> results = wait_for_all(std::move(tasks));
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
    CHECK_THROWS_WITH(wait_for_all(std::move(tasks)), "number 2");
    UNSCOPED_INFO("the tasks after the one that threw were not run to their end");
    CHECK(log == std::vector{1, 2, 3, 4});
  }
  UNSCOPED_INFO("a frame was not destroyed when sync_wait_all() threw: an object must own it");
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.4 sync_wait_all throws the first exception, whatever its type", "[06.4]") {
  std::vector<task<int>> tasks;
  tasks.push_back(throw_a_number(7));
  tasks.push_back(refuse("later"));
  UNSCOPED_INFO("the first task threw an int, and a later task's exception was thrown instead");
  CHECK_THROWS_AS(wait_for_all(std::move(tasks)), int);
}

TEST_CASE("06.4 sync_wait_all waits for every task, even if the first one fails at once",
          "[06.4]") {
  distant_event event;
  std::vector<task<int>> tasks;
  tasks.push_back(refuse("at once"));
  tasks.push_back(await_event(event, 1));
  UNSCOPED_INFO("the exception of the first task did not come out of sync_wait_all()");
  CHECK_THROWS_WITH(wait_for_all(std::move(tasks)), "at once");
  UNSCOPED_INFO(
      "sync_wait_all() threw while another task still waited, and destroyed its frame: look at the "
      "results only after ended.wait()");
  CHECK_FALSE(event.was_abandoned());
}

TEST_CASE("06.4 sync_wait_all of no tasks gives no results", "[06.4]") {
  CHECK(wait_for_all({}).empty());
  CHECK(sync_wait(answer()) == 42);
}
