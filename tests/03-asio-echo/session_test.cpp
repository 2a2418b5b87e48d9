// SPDX-License-Identifier: MIT
// Tasks 03.1 and 03.2: a session in callbacks, and the same as a coroutine.
#include <fcntl.h>

#include <asio/co_spawn.hpp>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <string>

#include "bytes.hpp"
#include "callback_echo.hpp"
#include "coroutine_echo.hpp"
#include "eventually.hpp"
#include "sanitized.hpp"
#include "session_fixture.hpp"

using namespace std::chrono_literals;
using completion::callback_session;
using course_test::compare_bytes;
using course_test::identical;
using course_test::session_fixture;

namespace {

std::weak_ptr<callback_session> start_callbacks(session_fixture& fixture) {
  const auto session =
      std::make_shared<callback_session>(std::move(fixture.socket), fixture.sockets);
  session->receive();
  return session;
}

struct outcome {
  bool ended = false;
  std::exception_ptr escaped;
};

void start_coroutine(session_fixture& fixture, asio::ip::tcp::socket& socket, outcome& result) {
  asio::co_spawn(fixture.io, completion::echo(std::move(socket), fixture.sockets),
                 [&result](const std::exception_ptr& escaped) {
                   result = {.ended = true, .escaped = escaped};
                   if (escaped) std::rethrow_exception(escaped);  // a TODO reaches the test
                 });
}

void start_coroutine(session_fixture& fixture, outcome& result) {
  start_coroutine(fixture, fixture.socket, result);
}

// Of a test whose claim begins after the echo.
void expect_an_echo(session_fixture& fixture) {
  UNSCOPED_INFO(
      "the session echoes nothing, or something else, or is gone: first mend the test \"each "
      "message comes back, one after the other\"");
  REQUIRE(fixture.echo("hello") == "hello");
}

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) != -1;
}

// Was the session's descriptor still open when its entry left the open_sockets? Declare it before
// the fixture, whose end may remove the entry.
struct last_look {
  bool gone = false;
  bool open = false;
};

void check_last_look(session_fixture& fixture, int fd, last_look& look) {
  fixture.sockets.when_empty([&look, fd] { look = {.gone = true, .open = is_open(fd)}; });
  UNSCOPED_INFO("the session ended before its client did: first mend that (see the tests above)");
  REQUIRE_FALSE(look.gone);
  ::shutdown(fixture.peer.get(), SHUT_WR);
  UNSCOPED_INFO("the client sent a FIN, and the session has not ended");
  REQUIRE(fixture.run_until([&look] { return look.gone; }));
  UNSCOPED_INFO(
      "the session closed its socket while its entry was still in the open_sockets. The number is "
      "then free for a new session, and the old entry removes the new one's. Do not call "
      "socket.close(): the end of the session destroys its entry, and then closes its socket");
  CHECK(look.open);
}

}  // namespace

TEST_CASE("03.1 each message comes back, one after the other", "[03.1]") {
  session_fixture fixture;
  const auto session = start_callbacks(fixture);
  UNSCOPED_INFO(
      "the session was destroyed while it waited: does the handler hold shared_from_this()?");
  REQUIRE_FALSE(session.expired());
  UNSCOPED_INFO("more than was sent: send the first `bytes` of the buffer, not all of it");
  CHECK(compare_bytes(fixture.echo("one"), "one") == identical);
  UNSCOPED_INFO("after an echo, receive again; both handlers hold shared_from_this()");
  CHECK(fixture.echo("two") == "two");
}

TEST_CASE("03.1 an operation in flight keeps its session alive", "[03.1]") {
  session_fixture fixture;
  const std::string early = "sent before the session receives";
  REQUIRE(session_fixture::try_send(fixture.peer.get(), early) == early.size());
  REQUIRE(course_test::eventually(2s, [&] { return fixture.socket.available() == early.size(); }));
  std::weak_ptr<callback_session> session = start_callbacks(fixture);
  // Under ASan the test goes on: the report names the session, and the handler that used it. A
  // weak_ptr would keep the memory of a session that is gone, and the report away.
  if (course_test::sanitized) session.reset();
  const auto lives = [&session] { return !session.expired() || course_test::sanitized; };
  UNSCOPED_INFO(
      "a receive is in flight and its session is gone: its handler captured `this` alone");
  REQUIRE(lives());
  UNSCOPED_INFO("bytes have arrived, and no handler runs: receive() initiates async_read_some");
  REQUIRE(fixture.io.run_one_for(2s) == 1);  // the receive's handler, which calls send()
  UNSCOPED_INFO("a send is in flight and its session is gone: its handler captured `this` alone");
  REQUIRE(lives());
  UNSCOPED_INFO("these bytes had arrived before receive() was called, and did not come back");
  CHECK(fixture.run_until([&] { return session_fixture::receive(fixture.peer.get()) == early; }));
  fixture.settle();  // the handler of the send runs, and ASan sees what it uses
}

TEST_CASE("03.1 an echo larger than all buffers is sent whole", "[03.1]") {
  session_fixture fixture{{.send_buffer_bytes = 4096}};
  const auto session = start_callbacks(fixture);
  const std::string message = course_test::pattern(1, 1024 * 1024);
  UNSCOPED_INFO(
      "bytes are missing or wrong: async_write sends all of a buffer, async_write_some some of it; "
      "or receive() was called before the write had completed, and overwrote the buffer; or the "
      "bytes were gone by then, because asio::buffer() copies nothing");
  CHECK(compare_bytes(fixture.echo(message, session_fixture::reader::late), message) == identical);
}

TEST_CASE("03.1 a session ends with its last operation", "[03.1]") {
  session_fixture fixture;
  const auto session = start_callbacks(fixture);
  expect_an_echo(fixture);
  ::shutdown(fixture.peer.get(), SHUT_WR);
  UNSCOPED_INFO(
      "at EOF start no further operation: the handler's shared_ptr was the last one, or does a "
      "member hold the session, too?");
  CHECK(fixture.run_until([&] { return session.expired(); }));
}

TEST_CASE("03.1 a reset ends the session and nothing else", "[03.1]") {
  session_fixture fixture;
  const auto session = start_callbacks(fixture);
  expect_an_echo(fixture);
  fixture.settle();  // so that the reset finds a receive in flight
  course_test::reset_on_close(fixture.peer.get());
  fixture.peer.reset();
  bool is_over = false;
  UNSCOPED_INFO(
      "a handler threw: at an error only return. shutdown() without an error_code throws after a "
      "reset");
  REQUIRE_NOTHROW(is_over = fixture.run_until([&] { return session.expired(); }));
  UNSCOPED_INFO(
      "after a reset the session waits forever: whatever the error, EOF or another, start no "
      "further operation; or does a member hold the session, too?");
  CHECK(is_over);
}

TEST_CASE("03.1 a send that fails ends the session", "[03.1]") {
  session_fixture fixture{{.send_buffer_bytes = 4096, .receive_buffer_bytes = 4096}};
  const auto session = start_callbacks(fixture);
  REQUIRE(fixture.fill(course_test::pattern(1, 64 * 1024)) > 0);
  fixture.sockets.shut_down_all(SHUT_RDWR);  // as the end of the grace time does
  UNSCOPED_INFO(
      "a send failed and the session goes on: its handler gets an error, too; or does a member "
      "hold the session?");
  CHECK(fixture.run_until([&] { return session.expired(); }));
}

TEST_CASE("03.1 a session is unregistered before its descriptor is closed", "[03.1]") {
  last_look look;
  session_fixture fixture;
  const int fd = fixture.socket.native_handle();
  const auto session = start_callbacks(fixture);
  expect_an_echo(fixture);
  check_last_look(fixture, fd, look);
}

TEST_CASE("03.2 each message comes back, one after the other", "[03.2]") {
  outcome result;
  session_fixture fixture;
  start_coroutine(fixture, result);
  UNSCOPED_INFO(
      "nothing came: async_read waits for a full buffer, and an operation without co_await "
      "never starts; more than was sent: write what was received, not the whole buffer");
  CHECK(compare_bytes(fixture.echo("one"), "one") == identical);
  UNSCOPED_INFO("after an echo, receive again: it is a loop");
  CHECK(fixture.echo("two") == "two");
  CHECK_FALSE(result.ended);
}

TEST_CASE("03.2 an echo larger than all buffers is sent whole", "[03.2]") {
  outcome result;
  session_fixture fixture{{.send_buffer_bytes = 4096}};
  start_coroutine(fixture, result);
  const std::string message = course_test::pattern(1, 1024 * 1024);
  UNSCOPED_INFO(
      "bytes are missing or wrong: async_write sends all of a buffer, async_write_some some of it; "
      "or the "
      "write has no co_await, and the next receive overwrote the buffer");
  CHECK(compare_bytes(fixture.echo(message, session_fixture::reader::late), message) == identical);
}

TEST_CASE("03.2 each session has a buffer of its own", "[03.2]") {
  outcome result;
  session_fixture slow{{.send_buffer_bytes = 4096}};
  start_coroutine(slow, result);
  outcome result_of_quick;
  session_fixture quick;
  start_coroutine(quick, result_of_quick);
  const std::string message = course_test::pattern(1, 1024 * 1024);
  const std::string other = course_test::pattern(2, 16 * 1024);
  std::string others;
  const auto talk = [&] { others = quick.echo(other); };
  const std::string echoed = slow.echo(message, session_fixture::reader::late, talk);
  CHECK(compare_bytes(others, other) == identical);
  UNSCOPED_INFO(
      "another session received while this one sent, and changed its bytes: a static buffer "
      "belongs to all sessions, a local variable to one");
  CHECK(compare_bytes(echoed, message) == identical);
}

TEST_CASE("03.2 the coroutine returns at the end of the stream", "[03.2]") {
  outcome result;
  session_fixture fixture;
  start_coroutine(fixture, result);
  expect_an_echo(fixture);
  ::shutdown(fixture.peer.get(), SHUT_WR);
  bool ended = false;
  UNSCOPED_INFO("EOF was thrown: pass or_error to the read, which then stores it in `error`");
  REQUIRE_NOTHROW(ended = fixture.run_until([&] { return result.ended; }));
  UNSCOPED_INFO("look at `error` after each co_await: without it, the session does not end");
  CHECK(ended);
  CHECK(result.escaped == nullptr);
}

TEST_CASE("03.2 a reset is a value, not an exception", "[03.2]") {
  outcome result;
  session_fixture fixture;
  start_coroutine(fixture, result);
  expect_an_echo(fixture);
  fixture.settle();  // so that the reset finds a receive in flight
  course_test::reset_on_close(fixture.peer.get());
  fixture.peer.reset();
  UNSCOPED_INFO("pass or_error to every operation, or its failure is thrown");
  CHECK_NOTHROW(fixture.run_until([&] { return result.ended; }));
  UNSCOPED_INFO(
      "after a reset the session waits forever: whatever the error, EOF or another, the coroutine "
      "returns");
  CHECK(result.ended);
}

TEST_CASE("03.2 a send that fails ends the coroutine", "[03.2]") {
  outcome result;
  session_fixture fixture{{.send_buffer_bytes = 4096, .receive_buffer_bytes = 4096}};
  start_coroutine(fixture, result);
  REQUIRE(fixture.fill(course_test::pattern(1, 64 * 1024)) > 0);
  fixture.sockets.shut_down_all(SHUT_RDWR);  // as the end of the grace time does
  UNSCOPED_INFO("a send failed and was thrown: pass or_error to the write as well");
  CHECK_NOTHROW(fixture.run_until([&] { return result.ended; }));
  UNSCOPED_INFO("a send failed and the coroutine goes on: look at `error` after the write as well");
  CHECK(result.ended);
}

TEST_CASE("03.2 a session is unregistered before its descriptor is closed", "[03.2]") {
  last_look look;
  outcome result;
  session_fixture fixture;
  const int fd = fixture.socket.native_handle();
  start_coroutine(fixture, result);
  expect_an_echo(fixture);
  check_last_look(fixture, fd, look);
}

TEST_CASE("03.2 the coroutine's frame owns the socket", "[03.2]") {
  outcome result;
  session_fixture fixture;
  const int fd = fixture.socket.native_handle();
  {
    asio::ip::tcp::socket accepted{std::move(fixture.socket)};
    start_coroutine(fixture, accepted, result);
  }
  UNSCOPED_INFO(
      "the caller's socket is gone, and the connection was closed with it: a reference in the "
      "frame owns nothing. Take the parameter by value: tcp::socket, neither & nor &&");
  REQUIRE(is_open(fd));
  CHECK(fixture.echo("hello") == "hello");
}
