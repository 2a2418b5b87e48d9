// SPDX-License-Identifier: MIT
// Task 06.5: a result that comes from outside every coroutine.
#include "promise.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <coroutine>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "counted.hpp"
#include "driver.hpp"
#include "small_tasks.hpp"
#include "sync_wait.hpp"
#include "task.hpp"
#include "watched_word.hpp"

using course_test::answer;
using course_test::counted;
using course_test::drive_into;
using course_test::driver;
using course_test::live_scope;
using course_test::watch;
using course_test::watched_word;
using uring::outcome;
using uring::promise;
using uring::sync_wait;
using uring::task;

namespace {

constexpr int races = 10'000;

// Counts how often an awaiter has tried to take its wait back.
struct counting_word : std::atomic<void*> {
  using std::atomic<void*>::atomic;

  bool compare_exchange_strong(void*& expected, void* value, std::memory_order order) noexcept {
    takebacks += value == nullptr ? 1 : 0;
    return std::atomic<void*>::compare_exchange_strong(expected, value, order);
  }
  using std::atomic<void*>::compare_exchange_strong;

  static inline int takebacks = 0;
};

std::exception_ptr an_error(const std::string& text) {
  return std::make_exception_ptr(std::runtime_error{text});
}

template <typename T, typename Word>
task<T> await(promise<T, Word>& awaited, counted) {
  const counted local;
  co_return co_await awaited;
}

task<int> await_own(std::unique_ptr<promise<int>> own) {
  promise<int>& awaited = *own;  // by name: GCC 12 would copy what `co_await *own` awaits
  const int value = co_await awaited;
  own.reset();
  co_return value;
}

task<int> block_after(promise<>& awaited) {
  co_await awaited;
  co_return sync_wait(answer());
}

// How a task ended, in words.
std::string in_words(outcome<int>& ended) {
  if (!ended.is_set()) return "it has not ended";
  try {
    return "value " + std::to_string(ended.take());
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("06.5 awaiting a settled promise does not suspend", "[06.5]") {
  promise<int> resolved;
  UNSCOPED_INFO("nobody waits yet: there is nothing to resume");
  resolved.resolve(42);
  UNSCOPED_INFO("settle() wrote nothing: the word becomes settled() even if nobody waits");
  REQUIRE(resolved.is_settled());
  CHECK(sync_wait(await(resolved, counted{})) == 42);
  promise<int> rejected;
  rejected.reject(an_error("not today"));
  outcome<int> ended;
  const driver outermost = drive_into(await(rejected, counted{}), ended);
  outermost.start();
  UNSCOPED_INFO("the result was there before anybody asked for it");
  CHECK(in_words(ended) == "not today");
}

TEST_CASE("06.5 resolve resumes the coroutine that waits", "[06.5]") {
  INFO("settle() may only resume the frame: its owner destroys it, even if it has ended");
  promise<int> awaited;
  outcome<int> ended;
  const driver outermost = drive_into(await(awaited, counted{}), ended);
  outermost.start();
  UNSCOPED_INFO("nobody has resolved it yet");
  REQUIRE_FALSE(outermost.has_ended());
  awaited.resolve(42);
  UNSCOPED_INFO("resolve() did not resume the coroutine that waits");
  REQUIRE(outermost.has_ended());
  CHECK(in_words(ended) == "value 42");
  UNSCOPED_INFO(
      "the coroutine was resumed, and the word still holds its handle: settle() stores settled() "
      "in either case");
  CHECK(awaited.is_settled());
}

TEST_CASE("06.5 reject resumes the coroutine that waits, which gets the exception", "[06.5]") {
  promise<int> awaited;
  outcome<int> ended;
  const driver outermost = drive_into(await(awaited, counted{}), ended);
  outermost.start();
  awaited.reject(an_error("not today"));
  UNSCOPED_INFO("reject() did not resume the coroutine that waits");
  REQUIRE(outermost.has_ended());
  CHECK(in_words(ended) == "not today");
}

TEST_CASE("06.5 await_suspend finds a result that came after await_ready", "[06.5]") {
  promise<int> awaited;
  auto awaiter = awaited.operator co_await();
  REQUIRE_FALSE(awaiter.await_ready());
  awaited.resolve(42);  // by another thread, say, that is faster
  const driver waiting = course_test::drive([]() -> task<> { co_return; }());
  const bool suspended = awaiter.await_suspend(waiting.handle());
  UNSCOPED_INFO(
      "await_suspend() resumed the coroutine: let it return false, and the coroutine "
      "continues by itself");
  REQUIRE_FALSE(waiting.has_ended());
  UNSCOPED_INFO(
      "await_suspend() returned true though the result is there: nobody will resume the "
      "coroutine any more");
  CHECK_FALSE(suspended);
  UNSCOPED_INFO(
      "await_suspend() wrote over settled(): let it store the handle only if it finds nobody there "
      "(compare_exchange_strong)");
  CHECK(awaited.is_settled());
}

TEST_CASE("06.5 await_suspend suspends if there is no result", "[06.5]") {
  promise<int, watched_word> awaited;
  auto awaiter = awaited.operator co_await();
  UNSCOPED_INFO(
      "compare_exchange_weak() may fail though the word is as expected: without a loop "
      "around it, use compare_exchange_strong()");
  CHECK(awaiter.await_suspend(std::noop_coroutine()));
  awaited.resolve(42);
}

TEST_CASE("06.5 a result that comes while a coroutine suspends is found", "[06.5]") {
  bool came_in = true;
  for (int access = 0; came_in; ++access) {
    promise<int, watched_word> awaited;
    outcome<int> ended;
    const driver outermost = drive_into(await(awaited, counted{}), ended);
    INFO("the result came before access "
         << access
         << " of the awaiting side to the word. Once the word holds its handle, the frame may run, "
            "and end: await_suspend() then touches nothing, and returns true");
    {
      const watch settler{access, [&] { awaited.resolve(42); }};
      outermost.start();
      came_in = settler.came_in();
    }
    if (!came_in) awaited.resolve(42);
    UNSCOPED_INFO(
        "await_suspend() wrote its handle over settled(): look and write in one operation");
    REQUIRE(outermost.has_ended());
    REQUIRE(in_words(ended) == "value 42");
  }
}

TEST_CASE("06.5 a coroutine may be resumed as soon as the word holds its handle", "[06.5]") {
  INFO(
      "the result came right after the exchange of await_suspend(), and the coroutine has run to "
      "its end by now: await_suspend() then touches nothing, not even waiting_, and returns true");
  promise<int, watched_word> awaited;
  outcome<int> ended;
  const driver outermost = drive_into(await(awaited, counted{}), ended);
  {
    const watch settler = watch::after_the_write([&] { awaited.resolve(42); });
    outermost.start();
    UNSCOPED_INFO("await_suspend() wrote nothing to the word");
    REQUIRE(settler.came_in());
  }
  REQUIRE(outermost.has_ended());
  REQUIRE(in_words(ended) == "value 42");
}

TEST_CASE("06.5 a coroutine that suspends while its promise is settled is resumed", "[06.5]") {
  bool came_in = true;
  for (int access = 0; came_in; ++access) {
    promise<int, watched_word> awaited;
    outcome<int> ended;
    const driver outermost = drive_into(await(awaited, counted{}), ended);
    {
      const watch starter{access, [&] { outermost.start(); }};
      awaited.resolve(42);
      came_in = starter.came_in();
    }
    if (!came_in) outermost.start();
    INFO("the coroutine came before access " << access << " of resolve() to the word");
    UNSCOPED_INFO("settle() wrote over the handle of a coroutine: look and write in one operation");
    REQUIRE(outermost.has_ended());
    REQUIRE(in_words(ended) == "value 42");
  }
}

TEST_CASE("06.5 each side sees the earlier writes of the other", "[06.5]") {
  promise<int, watched_word> settled_first;
  auto awaiter_of_settled = settled_first.operator co_await();
  {
    const watch settler;
    settled_first.resolve(42);
    UNSCOPED_INFO("settle() wrote nothing: the word becomes settled() even if nobody waits");
    REQUIRE(settler.has_written());
    UNSCOPED_INFO("the result is written before settle(): its access needs release order");
    CHECK(settler.publishes());
  }
  {
    const watch awaiting;
    CHECK_FALSE(awaiter_of_settled.await_suspend(std::noop_coroutine()));
    UNSCOPED_INFO(
        "await_suspend() found that the result is there, and the coroutine will read it: "
        "this access needs acquire order");
    CHECK(awaiting.sees_what_it_found());
    UNSCOPED_INFO(
        "await_suspend() found settled() and wrote over it, and for a moment nobody saw that the "
        "promise is settled: compare_exchange_strong writes only if it finds nobody");
    CHECK_FALSE(awaiting.has_written());
  }
  promise<int, watched_word> awaited_first;
  auto awaiter_that_waits = awaited_first.operator co_await();
  {
    const watch awaiting;
    CHECK(awaiter_that_waits.await_suspend(std::noop_coroutine()));
    UNSCOPED_INFO("the frame was written before await_suspend(): its access needs release order");
    CHECK((awaiting.has_written() && awaiting.publishes()));
  }
  {
    const watch settler;
    awaited_first.resolve(42);
    UNSCOPED_INFO(
        "settle() resumes a frame that another thread wrote: its access needs acquire "
        "order");
    CHECK(settler.sees_what_it_found());
  }
}

TEST_CASE("06.5 sync_wait is refused in a coroutine that another thread resumes", "[06.5]") {
  promise<> awaited;
  outcome<int> ended;
  const driver outermost = drive_into(block_after(awaited), ended);
  outermost.start();
  int afterwards = 0;
  std::thread settler{[&] {
    awaited.resolve();
    afterwards = sync_wait(answer());
  }};
  settler.join();
  UNSCOPED_INFO("resolve() ran a coroutine on a thread that is not marked as running_coroutines");
  CHECK_THAT(in_words(ended), Catch::Matchers::EndsWith("co_await it"));
  UNSCOPED_INFO("after resolve() the thread may wait again");
  CHECK(afterwards == 42);
}

TEST_CASE("06.5 a promise carries what a task can return", "[06.5]") {
  promise<std::unique_ptr<int>> boxed;
  boxed.resolve(std::make_unique<int>(7));
  REQUIRE(boxed.is_settled());
  CHECK(*sync_wait(await(boxed, counted{})) == 7);
  promise<> plain;
  plain.resolve();
  sync_wait(await(plain, counted{}));
  int number = 1;
  promise<int&> reference;
  reference.resolve(number);
  sync_wait(await(reference, counted{})) = 5;
  CHECK(number == 5);
}

TEST_CASE("06.5 a promise may end with the coroutine that waited for it", "[06.5]") {
  const live_scope before;
  {
    outcome<int> ended;
    auto awaited = std::make_unique<promise<int>>();
    promise<int>& resolved = *awaited;
    const driver outermost = drive_into(await_own(std::move(awaited)), ended);
    outermost.start();
    resolved.resolve(42);
    UNSCOPED_INFO("after it has resumed the coroutine, settle() may touch nothing of the promise");
    CHECK(in_words(ended) == "value 42");
  }
}

TEST_CASE("06.5 a frame that is destroyed while it waits is resumed by nobody", "[06.5]") {
  const live_scope before;
  counting_word::takebacks = 0;
  {
    promise<int, counting_word> awaited;
    outcome<int> ended;
    {
      const driver given_up = drive_into(await(awaited, counted{}), ended);
      given_up.start();
    }
    UNSCOPED_INFO(
        "the awaiter was destroyed more than once, or not at all, or its waiting_ was changed: "
        "compare_exchange_strong writes to its first argument, so give it another variable");
    CHECK(counting_word::takebacks == 1);
    CHECK(before.leaked_objects() == 0);
    awaited.resolve(42);  // the destroyed frame is not resumed: AddressSanitizer would tell
    CHECK_FALSE(ended.is_set());
    UNSCOPED_INFO("another coroutine may await it now, and gets the result");
    CHECK(sync_wait(await(awaited, counted{})) == 42);
  }
  UNSCOPED_INFO("a coroutine that was resumed, or did not have to wait, has nothing to take back");
  CHECK(counting_word::takebacks == 1);
}

TEST_CASE("06.5 after a frame was destroyed while it waited, another one may wait", "[06.5]") {
  promise<int> awaited;
  outcome<int> first;
  outcome<int> second;
  {
    const driver given_up = drive_into(await(awaited, counted{}), first);
    given_up.start();
  }
  const driver outermost = drive_into(await(awaited, counted{}), second);
  outermost.start();
  awaited.resolve(42);
  CHECK_FALSE(first.is_set());
  CHECK(in_words(second) == "value 42");
}

TEST_CASE("06.5 a promise that nobody awaits keeps its result until it is destroyed", "[06.5]") {
  const live_scope before;
  {
    promise<counted> unwanted;
    unwanted.resolve();
    CHECK(before.leaked_objects() == 1);
    promise<int> unsettled;
  }
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.5 another thread may resolve it before, while or after it is awaited", "[06.5]") {
  int wrong = 0;
  int first = 0;
  for (int i = 0; i < races; ++i) {
    promise<int> awaited;
    std::atomic<bool> go = false;
    std::thread settler{[&] {
      while (!go.load(std::memory_order_acquire)) {
      }
      std::atomic<int> pause = i % 64;
      while (pause.fetch_sub(1) > 0) {
      }
      awaited.resolve(i);
    }};
    go.store(true, std::memory_order_release);
    const int result = sync_wait(await(awaited, counted{}));
    settler.join();
    if (result != i && wrong++ == 0) first = i;
  }
  UNSCOPED_INFO("wrong results, the first of them in round " << first);
  CHECK(wrong == 0);
}

TEST_CASE("06.5 an exception from another thread arrives whole", "[06.5]") {
  int wrong = 0;
  for (int i = 0; i < races / 10; ++i) {
    promise<int> awaited;
    std::thread settler{[&] { awaited.reject(an_error("round " + std::to_string(i))); }};
    std::string said;
    try {
      said = std::to_string(sync_wait(await(awaited, counted{})));
    } catch (const std::runtime_error& error) {
      said = error.what();
    }
    settler.join();
    wrong += said != "round " + std::to_string(i) ? 1 : 0;
  }
  CHECK(wrong == 0);
}
