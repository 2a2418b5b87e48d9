// SPDX-License-Identifier: MIT
// Task 03.3: N threads, exceptions, and a clean stop.
#include "running.hpp"

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "client.hpp"
#include "eventually.hpp"
#include "server_process.hpp"

using namespace std::chrono_literals;
using course_test::client;
using course_test::exited;
using course_test::killed_by;
using course_test::program;
using course_test::server_process;

namespace {

std::vector<std::string> every_server() {
  return GENERATE(std::vector<std::string>{}, std::vector<std::string>{"--callbacks"},
                  std::vector<std::string>{"--threads", "2"},
                  std::vector<std::string>{"--callbacks", "--threads", "2"});
}

}  // namespace

TEST_CASE("03.3 a handler that throws does not end the loop", "[03.3]") {
  asio::io_context io;
  bool reached = false;
  asio::post(io, [] { throw std::runtime_error{"on purpose"}; });
  asio::post(io, [&reached] { reached = true; });
  UNSCOPED_INFO("run() lets an exception out: catch it, and call run() again");
  CHECK_NOTHROW(completion::run_to_the_end(io));
  UNSCOPED_INFO("the handler after the one that threw was never run");
  CHECK(reached);
}

TEST_CASE("03.3 N threads run N handlers at the same time", "[03.3]") {
  constexpr int threads = 3;
  asio::io_context io{threads};
  std::atomic<int> arrived = 0;
  std::atomic<int> met = 0;
  for (int i = 0; i < threads; ++i) {
    asio::post(io, [&] {
      ++arrived;
      if (course_test::eventually(2s, [&] { return arrived == threads; })) ++met;
    });
  }
  completion::run_on_threads(io, threads);
  UNSCOPED_INFO("handlers waited for each other in vain: do N threads call run()?");
  CHECK(met == threads);
}

TEST_CASE("03.3 SIGTERM lets the clients' last words come back and exits with 0", "[03.3]") {
  server_process server{program("03-server"), every_server()};
  std::vector<client> clients = course_test::connect_many(server.port(), 10);
  for (client& each : clients) REQUIRE(each.echo("hello") == "hello");
  for (client& each : clients) each.send_all("goodbye");
  UNSCOPED_INFO("after SIGTERM: close the acceptor, SHUT_RD every session, and let them finish");
  CHECK(server.stop() == exited(0));
  for (client& each : clients) CHECK(each.recv_until_eof() == "goodbye");
}

TEST_CASE("03.3 a client that never reads is cut after the grace time", "[03.3]") {
  server_process server{program("03-server"), every_server()};
  client stalled{server.port(), {.receive_buffer_bytes = 4096}};
  const std::string much(1024 * 1024, 'x');
  REQUIRE(course_test::eventually(5s, [&] { return stalled.send_some(much) == 0; }));
  UNSCOPED_INFO("the session waits to send: when grace_ expires, SHUT_RDWR");
  CHECK(server.stop() == exited(0));
}

TEST_CASE("03.3 a second signal ends the server at once", "[03.3]") {
  server_process server{program("03-server")};
  client stalled{server.port(), {.receive_buffer_bytes = 4096}};
  const std::string much(1024 * 1024, 'x');
  REQUIRE(course_test::eventually(5s, [&] { return stalled.send_some(much) == 0; }));
  server.send_signal(SIGTERM);
  UNSCOPED_INFO("the listener is still open after SIGTERM");
  REQUIRE(course_test::eventually(1s, [&] {
    try {
      const client late{server.port()};
      return false;
    } catch (const course_test::client_error&) {
      return true;
    }
  }));
  UNSCOPED_INFO("signals_.clear() gives the signal its default action back");
  CHECK(server.stop(SIGTERM, 500ms) == killed_by(SIGTERM));
}
