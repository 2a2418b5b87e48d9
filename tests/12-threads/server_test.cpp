// SPDX-License-Identifier: MIT
// The whole server: who serves whom, and what is left when it has ended. The echo contract is run
// against it as well, with one to four threads.
#include <signal.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bytes.hpp"
#include "client.hpp"
#include "echo_workers.hpp"
#include "eventually.hpp"
#include "fd_scope.hpp"
#include "feature.hpp"
#include "listen.hpp"
#include "process_counts.hpp"
#include "refuse_calls.hpp"
#include "server_process.hpp"
#include "stalled_client.hpp"
#include "stop_signal.hpp"
#include "watchdog.hpp"

using namespace std::chrono_literals;
using course_test::client;
using course_test::exited;
using course_test::server_process;
using course_test::watchdog;

namespace {

constexpr std::size_t worker_count = 4;

const std::vector<std::vector<std::string>> laboratory_switches{
    {},
    {"--threads", "4", "--ring-flags", "default", "--nonblocking", "--nagle"},
    {"--one-shot"},
    {"--submit-each-batch", "--wait-for", "4"},
    {"--look-first", "--ring-flags", "coop"},
};

// What --report says: a count for each worker.
std::vector<std::size_t> clients_of(const std::string& report) {
  std::vector<std::size_t> counts;
  std::istringstream lines{report};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find(": ");
    if (line.starts_with("worker ")) counts.push_back(std::stoul(line.substr(at + 2)));
  }
  return counts;
}

// Serves so many clients at the same time, each of which gets an echo; and what it reports then.
std::vector<std::size_t> serve(std::size_t clients, std::vector<std::string> flags) {
  flags.insert(flags.end(), {"--threads", std::to_string(worker_count), "--report"});
  server_process server{course_test::program("12-server"), flags};
  {
    auto crowd = course_test::connect_many(server.port(), clients);
    const auto messages = course_test::own_messages(clients, 200);
    CHECK(course_test::compare_all(course_test::echo_all(crowd, messages), messages) ==
          course_test::identical);
  }
  CHECK(server.stop() == exited(0));
  return clients_of(server.stdout_text());
}

// Clients that come, say something, and leave, until they are refused.
void come_and_go(std::uint16_t port, std::atomic<bool>& enough) {
  while (!enough) {
    try {
      client one{port};
      one.send_all("x");
      (void)one.recv_some(1);
    } catch (const std::exception&) {
      return;
    }
  }
}

}  // namespace

TEST_CASE("12 every worker has clients, and none is served twice") {
  const std::vector<std::size_t> counts = serve(200, {});
  REQUIRE(counts.size() == worker_count);
  std::size_t all = 0;
  for (const std::size_t each : counts) {
    UNSCOPED_INFO("of 200 clients the kernel's hash has given none to this worker");
    CHECK(each > 0);
    all += each;
  }
  CHECK(all == 200);
}

TEST_CASE("12.3 a server whose one worker deals gives each of them the same number", "[12.3]") {
  course_test::require_feature("msg_ring");
  course_test::require_feature("sqpoll");
  for (const char* ring_flags : {"default", "defer", "sqpoll"}) {
    const auto counts = serve(200, {"--hand-over", "--ring-flags", ring_flags});
    CHECK(counts == std::vector<std::size_t>(worker_count, 200 / worker_count));
  }
}

TEST_CASE("12 the laboratory echoes with every switch, and stops while requests are in flight",
          "[12]") {
  for (const std::vector<std::string>& switches : laboratory_switches) {
    server_process server{course_test::program("12-laboratory"), switches};
    auto crowd = course_test::connect_many(server.port(), 20);
    const auto messages = course_test::own_messages(crowd.size(), 200);
    CAPTURE(switches);
    CHECK(course_test::compare_all(course_test::echo_all(crowd, messages), messages) ==
          course_test::identical);
    client stalled{server.port(), course_test::small_buffers};
    (void)course_test::send_until_stalled(stalled, course_test::kernel_buffer_bytes_max());
    UNSCOPED_INFO("a recv for each client and a send to the stalled one are in flight at the stop");
    CHECK(server.stop() == exited(0));
  }
}

TEST_CASE("12 only the main thread takes SIGTERM") {
  const server_process server{
      course_test::program("12-server"),
      {"--threads", std::to_string(worker_count), "--ring-flags", "default"}};
  const auto is_restored = [&] { return !course_test::signal_blocked(server.pid(), SIGTERM); };
  REQUIRE(course_test::eventually(course_test::step_deadline, is_restored));
  for (const ::pid_t thread : course_test::thread_ids(server.pid())) {
    UNSCOPED_INFO("a signal that a worker takes ends its wait on the ring with EINTR");
    CHECK(course_test::signal_blocked(thread, SIGTERM) == (thread != server.pid()));
  }
}

TEST_CASE("12 a stop while clients come leaves no descriptor and no thread") {
  course_test::require_feature("msg_ring");
  const watchdog deadline{60s, "a worker waits for a client that does not come any more"};
  const std::size_t threads = course_test::thread_count();
  for (int round = 0; round < 20; ++round) {
    const course_test::fd_scope fds;
    std::atomic<bool> enough = false;
    {
      const common::stop_signal stop;
      const bool hand_over = round % 2 == 0;
      uring::echo_workers all{{.threads = 3,
                               .hand_over = hand_over,
                               .ring = {.mode = uring::ring_mode::defer},
                               .buffers = {16, 256}},
                              "127.0.0.1",
                              0,
                              stop};
      std::jthread crowd;
      std::jthread stopper;
      all.run([&](int listener) {
        const std::uint16_t port = common::port_of(listener);
        crowd = std::jthread{[&enough, port] { come_and_go(port, enough); }};
        stopper = std::jthread{[&stop, round] {
          std::this_thread::sleep_for(std::chrono::milliseconds{round});
          stop.request();
        }};
      });
      enough = true;
    }
    INFO("round " << round);
    UNSCOPED_INFO("a client on its way from one worker to another was lost");
    CHECK(fds.leaked().empty());
  }
  CHECK(course_test::thread_count() == threads);
}

TEST_CASE("12 if one worker's ring breaks, all end and the error is told") {
  course_test::require_feature("msg_ring");
  const watchdog deadline{30s, "one worker has failed, and the others serve on"};
  std::string said = "nothing was thrown";
  const common::stop_signal stop;
  uring::echo_workers all{{.threads = 3, .ring = {.mode = uring::ring_mode::defer}, .buffers = {}},
                          "127.0.0.1",
                          0,
                          stop};
  try {
    all.run([](int) { course_test::refuse_io_uring_enter(EPERM); });  // for the first worker alone
  } catch (const std::exception& error) {
    said = error.what();
  }
  CHECK(said == "io_uring_enter: EPERM (Operation not permitted)");
}
