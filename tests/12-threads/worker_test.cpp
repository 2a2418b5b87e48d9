// SPDX-License-Identifier: MIT
// Task 12.1: what a thread has for itself: a ring that belongs to it, and a listener.
#include "ring_worker.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "client.hpp"
#include "feature.hpp"
#include "io_context.hpp"
#include "listen.hpp"
#include "operations.hpp"
#include "ring_modes.hpp"
#include "socket_pair.hpp"
#include "task.hpp"
#include "unique_fd.hpp"
#include "watchdog.hpp"

using namespace std::chrono_literals;
using course_test::watchdog;
using uring::io_context;
using uring::listen_for_each;
using uring::task;
using uring::worker;

namespace {

task<int> nop(io_context& context) {
  const uring::io_result done = co_await uring::nop_op(context);
  co_return done.error();
}

// What a thread of its own meets when it enables the ring and sends a NOP through it.
std::string run_elsewhere(worker& own) {
  std::string came = "the thread has not ended";
  std::jthread{[&] {
    try {
      own.enable();
      came = own.context().run(nop(own.context())) == 0 ? "a NOP" : "an error";
    } catch (const std::exception& error) {
      came = error.what();
    }
  }}.join();
  return came;
}

std::vector<common::unique_fd> listen_for(std::size_t count, std::uint16_t port = 0) {
  return listen_for_each(count, "127.0.0.1", port);
}

// How many clients wait at a listener; they are taken.
std::size_t waiting_at(const common::unique_fd& listener) {
  course_test::set_nonblocking(listener.get());
  std::size_t clients = 0;
  while (common::unique_fd{::accept(listener.get(), nullptr, nullptr)}.valid()) ++clients;
  return clients;
}

}  // namespace

TEST_CASE("12.1 a worker's ring serves the thread that has enabled it", "[12.1]") {
  course_test::require_feature("r_disabled");
  course_test::require_feature("defer_taskrun");
  const watchdog deadline{5s, "the NOP has to complete on the thread that enabled the ring"};
  for (const uring::ring_options& options : course_test::all_rings) {
    INFO("--ring-flags " << name_of(options.mode) << " --sq " << options.sq_entries);
    worker own{options};
    UNSCOPED_INFO("EBADFD: the ring is still disabled; IORING_REGISTER_ENABLE_RINGS enables it");
    CHECK(run_elsewhere(own) == "a NOP");
  }
}

TEST_CASE("12.1 a ring that the kernel does not enable is an error that names the call", "[12.1]") {
  course_test::require_feature("r_disabled");
  std::string said = "nothing was thrown";
  worker own{{}};
  REQUIRE(run_elsewhere(own) == "a NOP");
  try {
    own.enable();  // it is enabled already
  } catch (const std::system_error& refusal) {
    said = refusal.what();
  }
  UNSCOPED_INFO("the answer is 0 or -errno: a worker that goes on without a ring serves nobody");
  CHECK(said == "io_uring_register: EBADFD (File descriptor in bad state)");
}

TEST_CASE("12 nothing can be submitted to a worker's ring before it is enabled") {
  course_test::require_feature("r_disabled");
  worker own{{}};
  CHECK_THROWS_AS(own.context().run(nop(own.context())), std::system_error);
}

TEST_CASE("12.1 each worker has a listener, and all of them have one port", "[12.1]") {
  UNSCOPED_INFO(
      "EADDRINUSE: the other program is this one. The first listener is after_bind, and all others "
      "are `yes`: a socket that shares its port from bind() on keeps after_bind from binding");
  const auto listeners = listen_for(4);
  UNSCOPED_INFO("one listener for each worker");
  REQUIRE(listeners.size() == 4);
  std::set<int> ports;
  for (const common::unique_fd& each : listeners) ports.insert(common::port_of(each.get()));
  UNSCOPED_INFO("port 0 lets the kernel choose, and for the others it must not choose again");
  CHECK(ports.size() == 1);
}

TEST_CASE("12.1 clients come to all of the listeners", "[12.1]") {
  const auto listeners = listen_for(3);
  REQUIRE(listeners.size() == 3);
  const auto crowd = course_test::connect_many(common::port_of(listeners.front().get()), 150);
  std::size_t clients = 0;
  for (const common::unique_fd& each : listeners) {
    const std::size_t here = waiting_at(each);
    UNSCOPED_INFO("of 150 clients none has come to this listener: is it on the same port?");
    CHECK(here > 0);
    clients += here;
  }
  CHECK(clients == 150);
}

TEST_CASE("12.1 a program that is started twice does not share the port", "[12.1]") {
  const auto listeners = listen_for(2);
  REQUIRE_FALSE(listeners.empty());
  const std::uint16_t port = common::port_of(listeners.front().get());
  UNSCOPED_INFO(
      "the second program has taken half of the clients: its first listener has to find the port "
      "taken, and so that one may be shared only after it is bound");
  CHECK_THROWS_AS(listen_for(2, port), std::system_error);
  UNSCOPED_INFO("nor does a program with one worker");
  CHECK_THROWS_AS(listen_for(1, port), std::system_error);
}

TEST_CASE("12.1 a port that was asked for is the port of all", "[12.1]") {
  std::uint16_t free_port = 0;
  {
    const auto any = course_test::listen_on_any_port();
    free_port = any.port;
  }
  const auto listeners = listen_for(2, free_port);
  REQUIRE(listeners.size() == 2);
  for (const common::unique_fd& each : listeners) CHECK(common::port_of(each.get()) == free_port);
}
