// SPDX-License-Identifier: MIT
// Callbacks made awaitable: called back before start has returned, later, and on another thread.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "counted.hpp"
#include "from_callback.hpp"
#include "io_context.hpp"
#include "promise.hpp"
#include "sync_wait.hpp"

using Catch::Matchers::ContainsSubstring;
using course_test::counted;
using course_test::live_scope;
using uring::from_callback;
using uring::sync_wait;
using uring::task;

namespace {

using read_callback = std::function<void(std::error_code, std::size_t)>;

// A library's way to say it: an error, and how much.
struct fake_device {
  std::jthread thread;

  // Calls back at once.
  static void read_cached(const read_callback& done) { done({}, 3); }

  // Calls back on a thread of its own, perhaps before the caller awaits.
  void read(std::chrono::microseconds after, read_callback done) {
    thread = std::jthread{[after, done = std::move(done)] {
      std::this_thread::sleep_for(after);
      done({}, 7);
    }};
  }
};

using answer = std::tuple<std::error_code, std::size_t>;

task<std::size_t> sum_of_two_reads(fake_device& device) {
  const answer first =
      co_await from_callback<std::error_code, std::size_t>(&fake_device::read_cached);
  const auto start = [&device](auto done) { device.read(std::chrono::milliseconds{5}, done); };
  const answer second = co_await from_callback<std::error_code, std::size_t>(start);
  co_return std::get<1>(first) + std::get<1>(second);
}

task<> wait_for_the_callback(std::function<void(int)>& kept, counted) {
  (void)co_await from_callback<int>([&kept](auto done) { kept = done; });
}

task<> wait_for(uring::promise<int>& awaited, int& seen, counted) {
  seen = co_await awaited;
}

// Spawns `waiting`, and tells why run() gave up.
std::string run_in_vain(task<> waiting) {
  uring::io_context context;
  context.spawn(std::move(waiting));
  try {
    context.run();
  } catch (const std::logic_error& given_up) {
    return given_up.what();
  }
  return "it did not give up";
}

}  // namespace

TEST_CASE("07 a callback that comes before start returns is awaited without a wait") {
  const auto at_once = [](auto done) { done(42); };
  CHECK(sync_wait(from_callback<int>(at_once)) == 42);
}

TEST_CASE("07 a callback that comes later resumes the coroutine that awaits it") {
  std::function<void(std::string)> later;
  std::optional<std::string> seen;
  std::jthread caller;
  const auto start = [&](auto done) {
    caller = std::jthread{[done] {
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
      done(std::string{"late"});
    }};
  };
  CHECK(sync_wait(from_callback<std::string>(start)) == "late");
}

TEST_CASE("07 an error and a count come as a pair") {
  const auto fail = [](const read_callback& done) {
    done(std::make_error_code(std::errc::connection_reset), 3);
  };
  const auto [error, count] = sync_wait(from_callback<std::error_code, std::size_t>(fail));
  CHECK(error == std::errc::connection_reset);
  CHECK(count == 3);
}

TEST_CASE("07 callbacks of either kind mix in one coroutine") {
  fake_device device;
  CHECK(sync_wait(sum_of_two_reads(device)) == 10);
}

TEST_CASE("07 a callback on another thread may come before, while or after it is awaited") {
  for (int round = 0; round < 500; ++round) {
    fake_device device;
    const std::chrono::microseconds after{round % 50};
    const auto start = [&](auto done) { device.read(after, done); };
    const answer read = sync_wait(from_callback<std::error_code, std::size_t>(start));
    REQUIRE(std::get<1>(read) == 7);
  }
}

TEST_CASE("07 a callback may bring nothing, or a value that can only be moved") {
  sync_wait(from_callback<>([](auto done) { done(); }));
  const auto give = [](auto done) { done(std::make_unique<int>(5)); };
  CHECK(*sync_wait(from_callback<std::unique_ptr<int>>(give)) == 5);
  const live_scope before;
  {
    const auto track = [](auto done) { done(counted{}); };
    const counted got = sync_wait(from_callback<counted>(track));
    CHECK(before.leaked_objects() == 1);
  }
  UNSCOPED_INFO("it was destroyed twice, or never");
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("07 an exception that start throws comes out of the co_await") {
  const auto refuse = [](const std::function<void(int)>&) {
    throw std::runtime_error{"the device is off"};
  };
  CHECK_THROWS_WITH(sync_wait(from_callback<int>(refuse)), "the device is off");
}

TEST_CASE("07 run gives up when all tasks wait for a callback that does not come") {
  const live_scope before;
  std::function<void(int)> never_called;
  CHECK_THAT(run_in_vain(wait_for_the_callback(never_called, counted{})),
             ContainsSubstring("in flight"));
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("07 a promise outlives the frame that waited for it and that run gave up") {
  const live_scope before;
  int seen = 0;
  uring::promise<int> awaited;
  CHECK_THAT(run_in_vain(wait_for(awaited, seen, counted{})), ContainsSubstring("in flight"));
  CHECK(before.leaked_objects() == 0);
  awaited.resolve(42);
  UNSCOPED_INFO("resolve() resumed a frame that has been destroyed");
  CHECK(seen == 0);
}
