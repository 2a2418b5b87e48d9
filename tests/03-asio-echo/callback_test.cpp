// SPDX-License-Identifier: MIT
// Task 03.1: a session in callbacks.
#include "callback_echo.hpp"

#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <string>

#include "bytes.hpp"
#include "session_fixture.hpp"

using completion::callback_session;
using course_test::session_fixture;

namespace {

std::weak_ptr<callback_session> start(session_fixture& fixture) {
  const auto session =
      std::make_shared<callback_session>(std::move(fixture.socket), fixture.sockets);
  session->receive();
  return session;
}

}  // namespace

TEST_CASE("03.1 what is sent comes back, again and again", "[03.1]") {
  session_fixture fixture;
  const auto session = start(fixture);
  UNSCOPED_INFO("the session died waiting: does the handler hold shared_from_this()?");
  REQUIRE_FALSE(session.expired());
  CHECK(fixture.echo("one") == "one");
  UNSCOPED_INFO("after an echo, receive again");
  CHECK(fixture.echo("two") == "two");
}

TEST_CASE("03.1 an echo larger than all buffers is sent whole", "[03.1]") {
  session_fixture fixture{{.send_buffer_bytes = 4096}};
  const auto session = start(fixture);
  const std::string message = course_test::pattern(1, 1024 * 1024);
  UNSCOPED_INFO("async_write sends all of a buffer; async_write_some sends some of it");
  CHECK(course_test::compare_bytes(fixture.echo(message, session_fixture::reader::late), message) ==
        course_test::identical);
}

TEST_CASE("03.1 a session ends with its last operation", "[03.1]") {
  session_fixture fixture;
  const auto session = start(fixture);
  REQUIRE(fixture.echo("hello") == "hello");
  ::shutdown(fixture.peer.get(), SHUT_WR);
  UNSCOPED_INFO("at EOF start no further operation: the handler's shared_ptr was the last one");
  CHECK(fixture.run_until([&] { return session.expired(); }));
}

TEST_CASE("03.1 a reset ends the session and nothing else", "[03.1]") {
  session_fixture fixture;
  const auto session = start(fixture);
  REQUIRE(fixture.echo("hello") == "hello");
  course_test::reset_on_close(fixture.peer.get());
  fixture.peer.reset();
  CHECK(fixture.run_until([&] { return session.expired(); }));
}
