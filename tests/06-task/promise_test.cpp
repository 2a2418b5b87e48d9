// SPDX-License-Identifier: MIT
// Task 06.5: a result that comes from outside every coroutine.
#include "promise.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "counted.hpp"
#include "driver.hpp"
#include "sync_wait.hpp"
#include "task.hpp"

using course_test::counted;
using course_test::drive_into;
using course_test::driver;
using course_test::live_scope;
using uring::outcome;
using uring::promise;
using uring::sync_wait;
using uring::task;

namespace {

constexpr int races = 10'000;

std::exception_ptr an_error(const std::string& text) {
  return std::make_exception_ptr(std::runtime_error{text});
}

template <typename T>
task<T> await(promise<T>& awaited, counted) {
  const counted local;
  co_return co_await awaited;
}

task<int> await_own(std::unique_ptr<promise<int>> own) {
  promise<int>& awaited = *own;  // by name: GCC 12 would copy what `co_await *own` awaits
  const int value = co_await awaited;
  own.reset();
  co_return value;
}

// What a task ended with, in words.
std::string in_words(outcome<int>& ended) {
  if (!ended.is_set()) return "it has not ended";
  try {
    return "value " + std::to_string(ended.take());
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("06.5 who awaits a settled promise does not wait", "[06.5]") {
  promise<int> resolved;
  UNSCOPED_INFO("nobody waits yet: there is nothing to resume");
  resolved.resolve(42);
  CHECK(sync_wait(await(resolved, counted{})) == 42);
  promise<int> rejected;
  rejected.reject(an_error("not today"));
  outcome<int> ended;
  const driver outermost = drive_into(await(rejected, counted{}), ended);
  outermost.start();
  UNSCOPED_INFO("the result was there before anybody asked for it");
  CHECK(in_words(ended) == "not today");
}

TEST_CASE("06.5 who waits goes on inside resolve", "[06.5]") {
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
}

TEST_CASE("06.5 who waits goes on inside reject, with the exception", "[06.5]") {
  promise<int> awaited;
  outcome<int> ended;
  const driver outermost = drive_into(await(awaited, counted{}), ended);
  outermost.start();
  awaited.reject(an_error("not today"));
  UNSCOPED_INFO("reject() did not resume the coroutine that waits");
  REQUIRE(outermost.has_ended());
  CHECK(in_words(ended) == "not today");
}

TEST_CASE("06.5 settled between await_ready and await_suspend, nobody waits", "[06.5]") {
  promise<int> awaited;
  REQUIRE_FALSE(awaited.await_ready());
  awaited.resolve(42);  // by another thread, say, that is faster
  const bool suspended = awaited.await_suspend(std::noop_coroutine());
  UNSCOPED_INFO("await_suspend() left a handle where nobody will look any more");
  CHECK_FALSE(suspended);
  UNSCOPED_INFO("the promise forgot that it is settled");
  CHECK(awaited.await_ready());
}

TEST_CASE("06.5 a promise carries what a task can return", "[06.5]") {
  promise<std::unique_ptr<int>> boxed;
  boxed.resolve(std::make_unique<int>(7));
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
    UNSCOPED_INFO("after it has resumed who waits, settle() may touch nothing of the promise");
    CHECK(in_words(ended) == "value 42");
  }
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

TEST_CASE("06.5 settled on another thread, before, while or after it is awaited", "[06.5]") {
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

TEST_CASE("06.5 rejected on another thread, the exception arrives whole", "[06.5]") {
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
