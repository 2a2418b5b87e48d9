// SPDX-License-Identifier: MIT
// Task 12.4: coroutines go to a pool of threads. No ring is in here, so that ThreadSanitizer sees
// everything: ./course test 12 -t 12.4 --sanitize-threads.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "eventually.hpp"
#include "meeting.hpp"
#include "process_counts.hpp"
#include "scripted_calls.hpp"
#include "sync_wait.hpp"
#include "task.hpp"
#include "thread_pool.hpp"
#include "watchdog.hpp"

using namespace std::chrono_literals;
using course_test::meeting;
using course_test::watchdog;
using uring::sync_wait;
using uring::sync_wait_all;
using uring::task;
using uring::thread_pool;

namespace {

task<std::thread::id> thread_of(thread_pool& pool) {
  co_await pool.schedule();
  co_return std::this_thread::get_id();
}

task<bool> meet(thread_pool& pool, meeting& all) {
  co_await pool.schedule();
  co_return all.attend();
}

task<int> hop(thread_pool& pool, int times) {
  int hops = 0;
  while (hops < times) {
    co_await pool.schedule();
    ++hops;
  }
  co_return hops;
}

task<int> hop_between(thread_pool& one, thread_pool& other) {
  co_await one.schedule();
  co_await other.schedule();
  co_return 1;
}

// Its exceptions are the program's: TSan does not see how libstdc++ counts who holds one.
task<int> fail_there(thread_pool& pool) {
  co_await pool.schedule();
  throw std::runtime_error{"thrown on the pool"};
}

// What coroutines have done, in which order.
class order {
 public:
  void note(char what) {
    const std::lock_guard lock{mutex_};
    text_ += what;
  }
  [[nodiscard]] std::string text() const {
    const std::lock_guard lock{mutex_};
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

// A coroutine that nobody awaits and that destroys itself at its end.
struct detached {
  struct promise_type {
    detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

detached note_there(thread_pool& pool, order& seen, char what) {
  co_await pool.schedule();
  seen.note(what);
}

detached hold(thread_pool& pool, meeting& until) {
  co_await pool.schedule();
  (void)until.attend();
}

task<::pid_t> number_of(thread_pool& pool, meeting& all) {
  co_await pool.schedule();
  (void)all.attend();  // so that each thread is asked once
  co_return ::gettid();
}

// The threads of a pool that has nothing else to do, as the kernel numbers them.
std::vector<::pid_t> numbers_of(thread_pool& pool) {
  meeting all{pool.size()};
  std::vector<task<::pid_t>> asked;
  asked.reserve(pool.size());
  for (std::size_t i = 0; i < pool.size(); ++i) asked.push_back(number_of(pool, all));
  return sync_wait_all(std::move(asked));
}

bool all_sleep(const std::vector<::pid_t>& threads) {
  return std::ranges::all_of(threads,
                             [](::pid_t each) { return course_test::process_state(each) == 'S'; });
}

bool all_others_sleep() {
  auto threads = course_test::thread_ids(::getpid());
  std::erase(threads, ::gettid());
  return all_sleep(threads);
}

}  // namespace

TEST_CASE("12.4 threads that wait for work leave when the pool ends", "[12.4]") {
  const watchdog deadline{3s,
                          "the pool ends, and its threads wait on: only wait(lock, ending, "
                          "predicate) wakes a thread when it is asked to leave"};
  const thread_pool pool{2};
  (void)course_test::eventually(1s, all_others_sleep);
}

TEST_CASE("12.4 a coroutine continues on a thread of the pool", "[12.4]") {
  const watchdog deadline{5s, "it was scheduled, and no thread goes on with it"};
  thread_pool pool{2};
  CHECK(pool.size() == 2);
  const std::thread::id there = sync_wait(thread_of(pool));
  UNSCOPED_INFO("it went on on the thread that has called: await_suspend() leaves that to work()");
  CHECK(there != std::this_thread::get_id());
}

TEST_CASE("12.4 a thread that sleeps is woken", "[12.4]") {
  const watchdog deadline{5s, "it was scheduled, and every thread sleeps on: notify_one()"};
  meeting none{0};
  thread_pool pool{1};
  const ::pid_t thread = sync_wait(number_of(pool, none));
  for (int round = 0; round < 10; ++round) {
    REQUIRE(course_test::eventually(3s, [&] { return all_sleep({thread}); }));
    (void)sync_wait(thread_of(pool));
  }
}

TEST_CASE("12.4 as many coroutines run at the same time as the pool has threads", "[12.4]") {
  const watchdog deadline{10s, "they were scheduled, and no thread goes on with them"};
  thread_pool pool{3};
  const auto threads = numbers_of(pool);
  bool together = true;
  // Again and again: a thread that wakes quickly hides that the next place wakes nobody.
  for (int round = 0; round < 50 && together; ++round) {
    REQUIRE(course_test::eventually(3s, [&] { return all_sleep(threads); }));
    meeting all{3};
    std::vector<task<bool>> coroutines;
    coroutines.reserve(3);
    for (int i = 0; i < 3; ++i) coroutines.push_back(meet(pool, all));
    const std::vector<bool> met = sync_wait_all(std::move(coroutines));
    together = std::ranges::count(met, true) == 3;
  }
  UNSCOPED_INFO(
      "each waits for the others, and they never ran together: a thread has to let go of the "
      "mutex before it resumes a coroutine, and each place wakes a thread");
  CHECK(together);
}

TEST_CASE("12.4 a coroutine may be scheduled again where it is", "[12.4]") {
  const watchdog deadline{5s, "the thread that runs it holds the mutex, which schedule() needs"};
  thread_pool pool{1};
  UNSCOPED_INFO(
      "if this is “Operation not permitted”: wait() and unlock() need the mutex locked, so lock "
      "it again after resume()");
  CHECK(sync_wait(hop(pool, 1000)) == 1000);
}

TEST_CASE("12.4 first come, first served", "[12.4]") {
  const watchdog deadline{10s, "something was scheduled, and has not run"};
  INFO("a place ends with the frame that it is in: pop_front() comes before resume()");
  order seen;
  meeting until{2};
  meeting all_have_run{2};
  {
    thread_pool pool{1};  // its end waits for the thread, which may still be in a meeting
    hold(pool, until);    // so that the others have to wait
    for (const char each : {'a', 'b', 'c', 'd'}) note_there(pool, seen, each);
    hold(pool, all_have_run);
    CHECK(until.attend());
    (void)all_have_run.attend();
  }
  UNSCOPED_INFO("the last to come must not be the first to go: push_back() and pop_front()");
  CHECK(seen.text() == "abcd");
}

TEST_CASE("12.4 every scheduled coroutine runs before the pool has gone", "[12.4]") {
  const watchdog deadline{10s, "the pool ends: its threads have to leave when no work is left"};
  INFO(
      "a coroutine that is never resumed is a frame that is never freed: a thread leaves only when "
      "it is asked to and no place waits. wait(lock, ending, predicate) says false then");
  order seen;
  const ::pid_t here = ::gettid();
  meeting until{2};
  std::jthread releaser;
  {
    thread_pool pool{1};
    hold(pool, until);  // its only thread is busy, so the others have to wait
    for (int i = 0; i < 10; ++i) note_there(pool, seen, 'x');
    releaser = std::jthread{[&until, here] {
      // This thread sleeps when it waits for the pool's: then the pool is ending.
      (void)course_test::eventually(3s, [here] { return all_sleep({here}); });
      (void)until.attend();
    }};
  }
  CHECK(seen.text().size() == 10);
}

TEST_CASE("12.4 when a coroutine has ended the pool may go", "[12.4]") {
  const watchdog deadline{20s, "the pool ends: its threads have to leave when no work is left"};
  int done = 0;
  for (int round = 0; round < 500; ++round) {
    thread_pool one{1};
    thread_pool other{1};  // goes first, as soon as the coroutine has ended
    done += sync_wait(hop_between(one, other));
  }
  CHECK(done == 500);
}

TEST_CASE("12.4 no place is lost when many come at the same time", "[12.4]") {
  const watchdog deadline{20s, "a coroutine was scheduled, and nobody has resumed it"};
  thread_pool pool{3};
  std::vector<task<int>> coroutines;
  coroutines.reserve(200);
  for (int i = 0; i < 200; ++i) coroutines.push_back(hop(pool, 50));
  const std::vector<int> hops = sync_wait_all(std::move(coroutines));
  CHECK(std::ranges::count(hops, 50) == 200);
}

TEST_CASE("12.4 idle threads sleep", "[12.4]") {
  INFO("a thread without work runs, and looks for some again and again: wait()");
  thread_pool pool{2};
  const auto threads = numbers_of(pool);
  REQUIRE(course_test::eventually(3s, [&] { return all_sleep(threads); }));
  int asleep = 0;
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(1ms);
    asleep += all_sleep(threads) ? 1 : 0;
  }
  CHECK(asleep == 50);
}

TEST_CASE("12 an exception on the pool reaches the coroutine that awaits it", "[12]") {
  const watchdog deadline{5s, "it was scheduled, and no thread goes on with it"};
  std::string said = "nothing";
  thread_pool pool{1};
  try {
    (void)sync_wait(fail_there(pool));
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  CHECK(said == "thrown on the pool");
}

TEST_CASE("12 a pool whose threads are refused leaves none behind", "[12]") {
  const watchdog deadline{5s, "the threads that were made have to leave"};
  const std::size_t before = course_test::thread_count();
  const course_test::refused_threads none_left{1};
  CHECK_THROWS_AS(thread_pool{3}, std::system_error);
  CHECK(course_test::thread_count() == before);
}
