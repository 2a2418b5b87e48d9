// SPDX-License-Identifier: MIT
// Task 01.4, and the server as a program: which client waits for which.
#include <chrono>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "client.hpp"
#include "eventually.hpp"
#include "server_process.hpp"

using namespace std::chrono_literals;
using course_test::client;
using course_test::eventually;
using course_test::exited;
using course_test::program;
using course_test::server_process;

// The naive server, kept so that this can be seen: see the page's first section.
TEST_CASE("01.3 one at a time, the second client waits for the first", "[01.3]") {
  server_process server{program("01-server"), {"--one-at-a-time"}};
  client first{server.port()};
  REQUIRE(first.echo("first") == "first");

  client second{server.port()};
  second.send_all("second");
  REQUIRE(first.echo("still the first") == "still the first");
  CHECK(second.recv_some(100).empty());

  first.close();
  CHECK(second.recv_exactly(6) == "second");
}

TEST_CASE("01.4 a second client is served while the first one says nothing", "[01.4]") {
  server_process server{program("01-server")};
  client silent{server.port()};
  REQUIRE(silent.echo("here") == "here");
  client second{server.port()};
  UNSCOPED_INFO(
      "the accept loop waits for the first client: give each one a thread, and do not "
      "join it there");
  CHECK_NOTHROW(second.echo("me too"));
  CHECK(silent.echo("still here") == "still here");
}

TEST_CASE("01.4 a client that resets ends no other client", "[01.4]") {
  server_process server{program("01-server")};
  client steady{server.port()};
  REQUIRE(steady.echo("before") == "before");
  for (int round = 0; round < 50; ++round) {
    client rude{server.port()};
    rude.send_all("never mind");
    rude.reset();
  }
  CHECK(steady.echo("after") == "after");
  CHECK(server.alive());
}

TEST_CASE("01.4 a session that ended gives back its descriptor and its thread", "[01.4]") {
  server_process server{program("01-server")};
  CHECK(client{server.port()}.echo("warm-up") == "warm-up");
  const std::size_t fds = server.open_fd_count();
  const std::size_t threads = server.thread_count();
  {
    std::vector<client> many = course_test::connect_many(server.port(), 100);
    for (client& each : many) REQUIRE(each.echo("x") == "x");
    for (std::size_t i = 0; i < many.size(); i += 2) many[i].reset();
  }
  UNSCOPED_INFO(
      "descriptors stayed open: does converse() come back to end_session(), whether the peer has "
      "finished or is gone?");
  CHECK(eventually(5s, [&] { return server.open_fd_count() <= fds; }));
  UNSCOPED_INFO("threads stayed behind");
  CHECK(eventually(5s, [&] { return server.thread_count() <= threads; }));
}

TEST_CASE("01.4 at the descriptor limit, a client that leaves makes room for one that waits",
          "[01.4]") {
  server_process server{program("01-server"), {}, {.fd_limit = 16}};
  const std::size_t own_fds = server.open_fd_count();
  std::vector<client> clients = course_test::connect_many(server.port(), 32);
  for (client& each : clients) each.send_all("x");
  std::size_t echoes = 0;  // each client sends one byte
  const auto echoes_come_to = [&](std::size_t expected) {
    return eventually(5s, [&] {
      for (client& each : clients) echoes += each.recv_some(1).size();
      return echoes == expected;
    });
  };
  REQUIRE(echoes_come_to(16 - own_fds));

  clients.erase(clients.begin());
  UNSCOPED_INFO(
      "one client has left, so a descriptor is free, and no client that waits is accepted: "
      "wait_for_a_session_to_end() waits for one session, not for all. It locks mutex_ itself, so "
      "call it without");
  CHECK(echoes_come_to(16 - own_fds + 1));
}

TEST_CASE("01.4 after SIGTERM the server echoes the bytes that clients have sent, and exits with 0",
          "[01.4]") {
  server_process server{program("01-server")};
  std::vector<client> clients = course_test::connect_many(server.port(), 10);
  for (client& each : clients) REQUIRE(each.echo("hello") == "hello");
  for (client& each : clients) each.send_all("goodbye");
  const course_test::exit_status status = server.stop();
  const char* const why =
      status == course_test::exit_status::running()
          ? "run() has not returned, or a session has not ended: the destructor shuts down the "
            "sockets that it finds in sessions_, so leave each in its entry"
          : "stop() shuts the listener down, and then accept() fails with EINVAL: while stopping_ "
            "is true, the listener is not broken";
  UNSCOPED_INFO(why);
  REQUIRE(status == exited(0));
  for (client& each : clients) {
    UNSCOPED_INFO(
        "bytes that had arrived before the stop were not echoed: run() only returns. The "
        "destructor ends the sessions, and gives each the time to echo what has arrived");
    CHECK(each.recv_exactly(7) == "goodbye");
    UNSCOPED_INFO(
        "after the last echo the connection ended with a reset, not with a FIN, or more came: is "
        "SO_LINGER set, on the listener or on the client's socket?");
    CHECK(each.recv_until_eof().empty());
  }
}
