// SPDX-License-Identifier: MIT
// The server from outside: which clients are closed for being idle, and how a stop ends the others.
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "bytes.hpp"
#include "client.hpp"
#include "eventually.hpp"
#include "server_process.hpp"
#include "stalled_client.hpp"

using namespace std::chrono_literals;
using course_test::client;
using course_test::ending;
using course_test::exited;
using course_test::identical;
using course_test::send_until_stalled;
using course_test::server_process;
using course_test::small_buffers;

namespace {

using clock_type = std::chrono::steady_clock;

server_process start(const std::vector<std::string>& arguments = {}) {
  return server_process{course_test::program("08-server"), arguments};
}

// A short while: the server's timeouts run.
std::size_t stall(client& peer) {
  return send_until_stalled(peer, 2 * course_test::kernel_buffer_bytes_max(), 100ms);
}

}  // namespace

TEST_CASE("08 a client that says nothing is closed, on time", "[08]") {
  const server_process server = start({"--idle-timeout-ms", "400"});
  const std::size_t at_rest = server.open_fd_count();
  const auto began = clock_type::now();
  client silent{server.port()};
  client polite{server.port()};
  CHECK(polite.echo("hello") == "hello");
  CHECK(silent.wait_for_end(3000ms) == ending::eof);
  CHECK(clock_type::now() - began >= 400ms);
  CHECK(polite.wait_for_end(3000ms) == ending::eof);
  CHECK(course_test::eventually(2s, [&] { return server.open_fd_count() == at_rest; }));
}

TEST_CASE("08 a client that says something now and then is not closed", "[08]") {
  const server_process server = start({"--idle-timeout-ms", "1500"});
  client slow{server.port()};
  const auto until = clock_type::now() + 3s;  // twice as long as it may be silent
  while (clock_type::now() < until) {
    REQUIRE(slow.echo("x") == "x");
    std::this_thread::sleep_for(200ms);
  }
  CHECK(slow.echo("still here") == "still here");
}

TEST_CASE("08 a reader that is slow but reads is not closed, and gets every byte", "[08]") {
  const server_process server = start({"--idle-timeout-ms", "2500"});  // stall() reads nothing
  client slow{server.port(), small_buffers};
  const std::size_t sent = stall(slow);
  std::string received;
  const auto until = clock_type::now() + 4s;
  while (clock_type::now() < until) {
    received += slow.recv_some(8 * 1024);
    std::this_thread::sleep_for(50ms);
  }
  REQUIRE(received.size() < sent);
  received += slow.recv_exactly(sent - received.size());
  UNSCOPED_INFO("the server gave up a client that was taking bytes all the time");
  CHECK(course_test::compare_bytes(received, course_test::pattern(0, sent)) == identical);
  CHECK(slow.echo("still here") == "still here");
}

TEST_CASE("08 a client that still takes its echoes is not idle", "[08]") {
  constexpr std::size_t bytes = 512 * 1024;  // which the server's own buffer holds
  const server_process server = start({"--idle-timeout-ms", "600"});
  client slow{server.port(), small_buffers};
  for (std::size_t sent = 0; sent < bytes;) {
    sent += slow.send_some(course_test::pattern(0, bytes - sent, sent));
  }
  std::string received;
  while (received.size() < bytes) {
    received += slow.recv_some(16 * 1024);
    std::this_thread::sleep_for(60ms);
  }
  CHECK(course_test::compare_bytes(received, course_test::pattern(0, bytes)) == identical);
  UNSCOPED_INFO("the server waited for bytes while its own were still on their way");
  CHECK(slow.echo("still here") == "still here");
}

TEST_CASE("08 a reader that takes nothing is closed", "[08]") {
  const server_process server = start({"--idle-timeout-ms", "800"});
  const std::size_t at_rest = server.open_fd_count();
  client stalled{server.port(), small_buffers};
  REQUIRE(stalled.echo("x") == "x");
  CHECK(server.open_fd_count() == at_rest + 1);
  CHECK(stall(stalled) > 0);
  UNSCOPED_INFO("a send that waits for room needs a deadline, too");
  CHECK(course_test::eventually(5s, [&] { return server.open_fd_count() == at_rest; }));
}

TEST_CASE("08 idle clients leave no descriptor, and their places are free again", "[08]") {
  const server_process server =
      start({"--idle-timeout-ms", "300", "--ring-flags", "defer", "--sq", "4", "--cq", "8"});
  const std::size_t at_rest = server.open_fd_count();
  {
    client first{server.port()};
    REQUIRE(first.echo("x") == "x");
  }
  for (int round = 0; round < 2; ++round) {
    const std::vector<client> crowd = course_test::connect_many(server.port(), 200);
    UNSCOPED_INFO("all of them were silent for longer than they may");
    CHECK(course_test::eventually(5s, [&] { return server.open_fd_count() == at_rest; }));
  }
  client last{server.port()};
  CHECK(last.echo("me too") == "me too");
}

TEST_CASE("08 with a timeout of 0 no client is closed", "[08]") {
  const server_process server = start({"--idle-timeout-ms", "0"});
  client silent{server.port()};
  CHECK(silent.wait_for_end(700ms) == ending::still_open);
  CHECK(silent.echo("at last") == "at last");
}

TEST_CASE("08 SIGTERM ends a thousand clients within two seconds", "[08]") {
  for (const char* flags : {"default", "coop", "defer", "sqpoll"}) {
    INFO("--ring-flags " << flags);
    server_process server = start({"--ring-flags", flags});
    std::vector<client> clients = course_test::connect_many(server.port(), 1000);
    const auto messages = course_test::own_messages(clients.size(), 64);
    REQUIRE(course_test::compare_all(course_test::echo_all(clients, messages), messages) ==
            identical);
    const auto asked = clock_type::now();
    UNSCOPED_INFO("a session that waits must be canceled, and joined");
    CHECK(server.stop() == exited(0));
    CHECK(clock_type::now() - asked < 2s);
    UNSCOPED_INFO("each sees an orderly end");
    CHECK(clients.front().wait_for_end() == ending::eof);
    CHECK(clients.back().wait_for_end() == ending::eof);
  }
}

TEST_CASE("08 SIGTERM ends it within two seconds while clients do not take their echo", "[08]") {
  server_process server = start();
  std::vector<client> idle = course_test::connect_many(server.port(), 950);
  std::vector<client> stalled = course_test::connect_many(server.port(), 3, small_buffers);
  for (client& each : stalled) CHECK(stall(each) > 0);
  const auto asked = clock_type::now();
  CHECK(server.stop() == exited(0));
  UNSCOPED_INFO("a client that does not take its echo within the grace does not get it");
  CHECK(clock_type::now() - asked < 2s);
}

TEST_CASE("08 a queue of one entry has room for a request and its deadline", "[08]") {
  server_process server = start({"--sq", "1", "--cq", "1"});
  std::vector<client> clients = course_test::connect_many(server.port(), 20);
  for (client& each : clients) CHECK(each.echo("x") == "x");
  CHECK(server.stop() == exited(0));
}

TEST_CASE("08 a negative idle timeout is refused with a sentence", "[08]") {
  const auto run =
      course_test::run_program(course_test::program("08-server"), {"--idle-timeout-ms", "-5"});
  CHECK(run.status == exited(2));
  CHECK(run.stderr_text.find("--idle-timeout-ms") != std::string::npos);
}
