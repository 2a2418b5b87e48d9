// SPDX-License-Identifier: MIT
// Task 12.2: workers begin together and stop together.
#include "workers.hpp"

#include <liburing.h>
#include <poll.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>

#include "addressed.hpp"
#include "fd_scope.hpp"
#include "feature.hpp"
#include "message.hpp"
#include "noted_threads.hpp"
#include "operations.hpp"
#include "process_counts.hpp"
#include "scripted_calls.hpp"
#include "stop_signal.hpp"
#include "task.hpp"
#include "watchdog.hpp"

using namespace std::chrono_literals;
using course_test::noted_threads;
using course_test::watchdog;
using uring::io_context;
using uring::task;
using uring::worker;
using uring::workers;

namespace {

constexpr uring::ring_options small{.mode = uring::ring_mode::defer, .sq_entries = 8};

task<> one_nop(io_context& context) {
  (void)co_await uring::nop_op(context);
}

task<> until_stopped(io_context& context, const common::stop_signal& stop) {
  (void)co_await uring::poll_op(context, stop.fd(), POLLIN);
}

// Serves as a server does: until a stop is asked for.
void serve(worker& own, const common::stop_signal& stop) {
  own.context().run(until_stopped(own.context(), stop));
}

std::string escaped_from(workers& all, const workers::serve_function& serves) {
  try {
    all.run(serves);
  } catch (const std::exception& error) {
    return error.what();
  } catch (int number) {
    return std::to_string(number);
  }
  return "nothing";
}

struct deaf final : uring::message_receiver {
  void on_message(const uring::message&) override {}
};

// Enables a worker's ring: its own thread will be refused, with EEXIST.
int enable_before_its_thread(workers& all, std::size_t index) {
  return ::io_uring_register(static_cast<unsigned>(all.context_of(index).handle().ring_fd),
                             IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
}

task<int> send_to(io_context& from, io_context& to, deaf& receiver) {
  const uring::io_result sent =
      co_await uring::msg_ring_op(from, to, uring::address_of(receiver), 1);
  co_return sent.error();
}

}  // namespace

TEST_CASE("12.2 each worker serves on a thread of its own, and run waits for all", "[12.2]") {
  course_test::require_feature("r_disabled");
  const watchdog deadline{5s, "every worker has ended, and run() has not: whom does it wait for?"};
  const common::stop_signal stop;
  workers all{4, small, stop};
  noted_threads threads;
  std::atomic<unsigned> served{0};
  all.run([&](worker& own, std::size_t index) {
    threads.note();
    own.context().run(one_nop(own.context()));
    served += 1U << index;
  });
  UNSCOPED_INFO("a bit for each index: every worker serves once, and run() returns after the last");
  CHECK(served == 0b1111U);
  UNSCOPED_INFO("a ring each, and a thread each");
  CHECK(threads.count() == 4);
}

TEST_CASE("12.2 a thread that begins late serves with its own index", "[12.2]") {
  course_test::require_feature("r_disabled");
  const watchdog deadline{5s, "every worker has ended, and run() has not: whom does it wait for?"};
  const common::stop_signal stop;
  workers all{4, small, stop};
  std::mutex mutex;
  std::multiset<std::size_t> indexes;
  const course_test::late_threads late{50ms};  // start_all() has made them all, and returned
  all.run([&](worker&, std::size_t index) {
    const std::lock_guard lock{mutex};
    indexes.insert(index);
  });
  UNSCOPED_INFO(
      "a thread reads what it has captured when it runs, and start_all() has gone on by then: it "
      "needs copies, [this, &each, index, &serve], where `each` is the reference of this round");
  CHECK(indexes == std::multiset<std::size_t>{0, 1, 2, 3});
}

TEST_CASE("12.2 a stop ends all of them", "[12.2]") {
  course_test::require_feature("r_disabled");
  const watchdog deadline{5s, "a stop was asked for"};
  const common::stop_signal stop;
  workers all{3, small, stop};
  all.run([&](worker& own, std::size_t index) {
    if (index == 1) stop.request();
    serve(own, stop);
  });
}

TEST_CASE("12.2 the error of one worker ends all, and run throws it", "[12.2]") {
  course_test::require_feature("r_disabled");
  const watchdog deadline{5s, "one worker has failed: the others have to be asked to stop"};
  for (std::size_t failing = 0; failing < 3; ++failing) {
    const common::stop_signal stop;
    workers all{3, small, stop};
    const std::string said = escaped_from(all, [&](worker& own, std::size_t index) {
      if (index == failing) throw std::runtime_error{"worker " + std::to_string(index)};
      serve(own, stop);
    });
    UNSCOPED_INFO("the error has to reach whoever called run(), when all have ended");
    CHECK(said == "worker " + std::to_string(failing));
  }
}

TEST_CASE("12.2 of several errors the first is thrown", "[12.2]") {
  course_test::require_feature("r_disabled");
  const watchdog deadline{
      5s, "worker 1 has to fail, and the others to be asked to stop: has each its own index?"};
  const common::stop_signal stop;
  workers all{3, small, stop};
  const std::string said = escaped_from(all, [&](worker& own, std::size_t index) {
    if (index == 1) throw std::runtime_error{"the cause"};
    serve(own, stop);
    throw std::runtime_error{"a consequence"};  // after the stop, and so after the cause
  });
  UNSCOPED_INFO("what a worker meets because it was stopped is not why it was stopped");
  CHECK(said == "the cause");
}

TEST_CASE("12.2 whatever a worker throws is kept", "[12.2]") {
  course_test::require_feature("r_disabled");
  const watchdog deadline{
      5s, "worker 0 has to fail, and the other to be asked to stop: has each its own index?"};
  const common::stop_signal stop;
  workers all{2, small, stop};
  UNSCOPED_INFO("no exception may leave a thread, and not all are std::exceptions");
  CHECK(escaped_from(all, [&](worker& own, std::size_t index) {
          if (index == 0) throw 42;
          serve(own, stop);
        }) == "42");
}

TEST_CASE("12.2 nobody serves before every ring is enabled", "[12.2]") {
  course_test::require_feature("r_disabled");
  course_test::require_feature("msg_ring");
  const watchdog deadline{5s, "the workers wait for each other, and one does not come"};
  const common::stop_signal stop;
  workers all{3, small, stop};
  deaf receiver;
  std::atomic<int> refused{0};
  const course_test::fast_threads early{50ms};  // each runs before the next one is made
  all.run([&](worker& own, std::size_t) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const int error = own.context().run(send_to(own.context(), all.context_of(i), receiver));
      if (error != 0) ++refused;
    }
  });
  UNSCOPED_INFO("EBADFD: a message was sent to a ring that its thread has not enabled yet");
  CHECK(refused == 0);
}

TEST_CASE("12.2 if the system has no thread left nobody serves, and nothing stays behind",
          "[12.2]") {
  course_test::require_feature("r_disabled");
  const watchdog deadline{5s,
                          "a thread could not be made: nobody may wait for it. give_up() once for "
                          "each worker without a thread, this one too"};
  const common::stop_signal stop;
  const std::size_t threads_before = course_test::thread_count();
  for (std::size_t made = 0; made < 3; ++made) {
    const course_test::fd_scope fds;
    std::atomic<int> serving{0};
    {
      workers all{3, small, stop};
      const course_test::refused_threads none_left{made};
      UNSCOPED_INFO("std::jthread threw a std::system_error: pass it on by failed()");
      CHECK_THROWS_AS(all.run([&](worker&, std::size_t) { ++serving; }), std::system_error);
    }
    UNSCOPED_INFO(
        "a server with fewer threads than were asked for is not what was asked for: where "
        "arrive_and_wait() returns false, the worker does not serve");
    CHECK(serving == 0);
    CHECK(course_test::thread_count() == threads_before);
    CHECK(fds.leaked().empty());
  }
}

TEST_CASE("12.2 if a ring cannot be enabled nobody serves", "[12.2]") {
  course_test::require_feature("r_disabled");
  const watchdog deadline{5s, "a worker has no ring, and the others wait for it"};
  for (std::size_t broken = 0; broken < 3; ++broken) {
    const common::stop_signal stop;
    workers all{3, small, stop};
    REQUIRE(enable_before_its_thread(all, broken) == 0);
    std::atomic<int> serving{0};
    UNSCOPED_INFO(
        "this ring is enabled already, so enable() throws EEXIST: no exception may leave "
        "run_one(), which is noexcept. Catch it there, and pass it on by failed()");
    const std::string said = escaped_from(all, [&](worker&, std::size_t) { ++serving; });
    CHECK(said.starts_with("io_uring_register: "));
    UNSCOPED_INFO(
        "one of them could not start: start_.give_up() tells the others, if it comes before they "
        "serve. So each worker calls enable() before arrive_and_wait()");
    CHECK(serving == 0);
  }
}

TEST_CASE("12.2 if a ring is refused and then a thread run throws the first error", "[12.2]") {
  course_test::require_feature("r_disabled");
  const watchdog deadline{5s,
                          "a worker's ring was refused: failed() has to ask for a stop, without a "
                          "wait for the other worker: enable() comes before arrive_and_wait()"};
  const common::stop_signal stop;
  workers all{2, small, stop};
  REQUIRE(enable_before_its_thread(all, 0) == 0);
  const course_test::refused_threads none_left{1, [&stop] { stop.wait(); }};
  std::atomic<int> serving{0};
  const std::string said = escaped_from(all, [&](worker&, std::size_t) { ++serving; });
  UNSCOPED_INFO(
      "the ring was refused first, and run() has thrown the second error: start_all() gives what "
      "it catches to failed(), and throws nothing");
  CHECK(said.starts_with("io_uring_register: "));
  CHECK(serving == 0);
}
