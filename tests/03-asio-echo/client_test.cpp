// SPDX-License-Identifier: MIT
// Task 03.4: the coroutine client, against servers that are right and one that is not.
#include "coroutine_client.hpp"

#include <poll.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <string>

#include "client.hpp"
#include "errors.hpp"
#include "hang_guard.hpp"
#include "patience.hpp"
#include "server_process.hpp"
#include "socket_pair.hpp"

using namespace std::chrono_literals;
using course_test::exited;
using course_test::hang_guard;
using course_test::program;
using course_test::run_program;
using course_test::server_process;

namespace {

enum class behavior {
  faithful,
  in_pieces,
  corrupting,
  corrupting_first,  // and no other
  repeating,         // the first message, forever
  leaving,           // after the first echo
};

// Serves one connection in the test's own io_context: reads a message whole, counts it, answers.
asio::awaitable<void> serve_one(asio::ip::tcp::acceptor& acceptor, behavior how,
                                std::size_t message_bytes, std::int64_t& messages) {
  asio::ip::tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
  acceptor.close();  // a second connection is refused
  std::vector<unsigned char> bytes(message_bytes);
  std::vector<unsigned char> first;
  while (true) {
    co_await asio::async_read(socket, asio::buffer(bytes), asio::use_awaitable);
    ++messages;
    if (first.empty()) first = bytes;
    if (how == behavior::repeating) bytes = first;
    if (how == behavior::corrupting || (how == behavior::corrupting_first && messages == 1)) {
      bytes.back() = static_cast<unsigned char>(~bytes.back());
    }
    const std::size_t piece = how == behavior::in_pieces ? 1 : bytes.size();
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      co_await asio::async_write(socket, asio::buffer(bytes.data() + at, piece),
                                 asio::use_awaitable);
    }
    if (how == behavior::leaving) co_return;
  }
}

// How many echoes the client says it got; -1 if it is still waiting after five seconds. The caller
// may use its plan again as soon as the coroutine has been started.
std::int64_t talk_to(
    behavior how, std::int64_t requests, std::size_t message_bytes,
    const std::function<void(completion::conversation&)>& use_again = [](auto&) {}) {
  const hang_guard guard{
      "the client waits in a call and holds the only thread, so the server cannot answer: co_await "
      "an async_ function each time, neither asio::read nor asio::write",
      7};
  std::int64_t messages = 0;
  asio::io_context io{1};
  asio::ip::tcp::acceptor acceptor{io, {asio::ip::make_address("127.0.0.1"), 0}};
  // Detached: its one exception is the end of the client, and what ends this test.
  asio::co_spawn(io, serve_one(acceptor, how, message_bytes, messages), asio::detached);
  std::exception_ptr escaped;
  std::int64_t echoes = -1;
  completion::conversation plan{acceptor.local_endpoint(), requests, message_bytes};
  asio::co_spawn(io, completion::converse(plan),
                 [&](const std::exception_ptr& exception, std::int64_t count) {
                   escaped = exception;
                   echoes = count;
                   acceptor.close();
                 });
  use_again(plan);
  io.run_for(5s * course_test::patience());
  if (escaped) std::rethrow_exception(escaped);
  if (echoes == requests && messages != requests) {
    FAIL_CHECK("the server got " << messages << " messages instead of " << requests
                                 << ": send plan.requests of them, from request 0 to request "
                                    "plan.requests - 1");
  }
  return echoes;
}

}  // namespace

TEST_CASE("03.4 the client gets every echo it asked for", "[03.4]") {
  UNSCOPED_INFO(
      "-1: the client still waits. Does it send each message, and co_await every operation? "
      "Connection refused: connect once, before the loop");
  CHECK(talk_to(behavior::faithful, 100, 64) == 100);
}

TEST_CASE("03.4 the coroutine's frame owns the plan", "[03.4]") {
  UNSCOPED_INFO(
      "the caller used its plan again, and the client followed: a reference in the frame owns "
      "nothing. Take the parameter by value: conversation plan, without &");
  CHECK(talk_to(behavior::faithful, 3, 64, [](completion::conversation& plan) {
          plan.requests = 0;
          plan.message_bytes = 1;
        }) == 3);
}

TEST_CASE("03.4 a client that connects leaves the thread to the others", "[03.4]") {
  // Its accept queue holds one client and nobody accepts: the next connect waits.
  const course_test::tcp_listener listener = course_test::listen_on_any_port();
  common::check(::listen(listener.socket.get(), 0), "listen");
  const course_test::client queued{listener.port};
  ::pollfd arrived{.fd = listener.socket.get(), .events = POLLIN, .revents = 0};
  REQUIRE(::poll(&arrived, 1, 2000 * course_test::patience()) == 1);

  const hang_guard guard{
      "connect() waits for the server and holds the only thread: co_await socket.async_connect", 5};
  asio::io_context io{1};
  std::exception_ptr escaped;
  bool ended = false;
  bool served = false;
  asio::co_spawn(
      io, completion::converse({{asio::ip::make_address("127.0.0.1"), listener.port}, 1, 64}),
      [&](const std::exception_ptr& exception, std::int64_t) {
        escaped = exception;
        ended = true;
      });
  asio::post(io, [&served] { served = true; });
  io.poll();
  if (escaped) std::rethrow_exception(escaped);
  CHECK(served);
  UNSCOPED_INFO("the server has no room for the client, and yet converse() has ended");
  CHECK_FALSE(ended);
}

TEST_CASE("03.4 an echo in pieces is read whole", "[03.4]") {
  UNSCOPED_INFO("async_read_some reads some: async_read reads as much as the buffer holds");
  CHECK(talk_to(behavior::in_pieces, 3, 512) == 3);
}

TEST_CASE("03.4 a message larger than the socket's buffers is sent whole", "[03.4]") {
  UNSCOPED_INFO("-1: the server waits for the rest. async_write_some sends some of the message");
  CHECK(talk_to(behavior::faithful, 2, 16 * 1024 * 1024) == 2);
}

TEST_CASE("03.4 an echo that differs is an error", "[03.4]") {
  UNSCOPED_INFO(
      "compare the reply with the message, all of it (size(), not sizeof), and throw "
      "std::runtime_error");
  CHECK_THROWS_AS(talk_to(behavior::corrupting, 3, 512), std::runtime_error);
  UNSCOPED_INFO("the first echo of three differed, and nobody saw it: compare inside the loop");
  CHECK_THROWS_AS(talk_to(behavior::corrupting_first, 3, 512), std::runtime_error);
  UNSCOPED_INFO("fill() each message anew: the server answered with an old one, and nobody saw it");
  CHECK_THROWS_AS(talk_to(behavior::repeating, 3, 512), std::runtime_error);
}

TEST_CASE("03.4 a server that leaves is an error", "[03.4]") {
  UNSCOPED_INFO(
      "the server left after one echo of three, and the client says nothing: with "
      "asio::use_awaitable alone as its token, a failed operation throws; let the exception pass");
  CHECK_THROWS_AS(talk_to(behavior::leaving, 3, 512), std::system_error);
}

TEST_CASE("03.4 a hundred clients share one thread", "[03.4]") {
  server_process server{program("03-server")};
  const auto client = run_program(program("03-client"), {"--port", std::to_string(server.port()),
                                                         "--clients", "100", "--requests", "100"});
  CHECK(client.status == exited(0));
  CHECK(client.stdout_text == "10000 echoes of 1024 bytes\n");
}

TEST_CASE("03 a client that nobody answers says so and exits with 1", "[03]") {
  const auto client = run_program(program("03-client"), {"--port", "1"});
  CHECK(client.status == exited(1));
  CHECK_THAT(client.stderr_text, Catch::Matchers::ContainsSubstring("Connection refused"));
}
