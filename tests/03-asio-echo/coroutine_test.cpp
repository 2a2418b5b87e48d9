// SPDX-License-Identifier: MIT
// Task 03.2: the same session as a coroutine.
#include "coroutine_echo.hpp"

#include <asio/co_spawn.hpp>
#include <catch2/catch_test_macros.hpp>
#include <exception>
#include <string>

#include "bytes.hpp"
#include "session_fixture.hpp"

using course_test::session_fixture;

namespace {

struct outcome {
  bool ended = false;
  std::exception_ptr escaped;
};

void start(session_fixture& fixture, outcome& result) {
  asio::co_spawn(fixture.io, completion::echo(std::move(fixture.socket), fixture.sockets),
                 [&result](const std::exception_ptr& escaped) {
                   result = {.ended = true, .escaped = escaped};
                   if (escaped) std::rethrow_exception(escaped);  // a TODO reaches the test
                 });
}

}  // namespace

TEST_CASE("03.2 what is sent comes back, again and again", "[03.2]") {
  outcome result;
  session_fixture fixture;
  start(fixture, result);
  CHECK(fixture.echo("one") == "one");
  UNSCOPED_INFO("after an echo, receive again: it is a loop");
  CHECK(fixture.echo("two") == "two");
  CHECK_FALSE(result.ended);
}

TEST_CASE("03.2 an echo larger than all buffers is sent whole", "[03.2]") {
  outcome result;
  session_fixture fixture{{.send_buffer_bytes = 4096}};
  start(fixture, result);
  const std::string message = course_test::pattern(1, 1024 * 1024);
  UNSCOPED_INFO("async_write sends all of a buffer; async_write_some sends some of it");
  CHECK(course_test::compare_bytes(fixture.echo(message, session_fixture::reader::late), message) ==
        course_test::identical);
}

TEST_CASE("03.2 the coroutine returns at the end of the stream", "[03.2]") {
  outcome result;
  session_fixture fixture;
  start(fixture, result);
  REQUIRE(fixture.echo("hello") == "hello");
  ::shutdown(fixture.peer.get(), SHUT_WR);
  UNSCOPED_INFO("look at `error` after each co_await: without it, the loop reads EOF for ever");
  CHECK(fixture.run_until([&] { return result.ended; }));
  CHECK(result.escaped == nullptr);
}

TEST_CASE("03.2 a reset is a value, not an exception", "[03.2]") {
  outcome result;
  session_fixture fixture;
  start(fixture, result);
  REQUIRE(fixture.echo("hello") == "hello");
  course_test::reset_on_close(fixture.peer.get());
  fixture.peer.reset();
  UNSCOPED_INFO("pass or_error to every operation, or its failure is thrown");
  CHECK_NOTHROW(fixture.run_until([&] { return result.ended; }));
  CHECK(result.ended);
}
