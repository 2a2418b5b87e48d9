// SPDX-License-Identifier: MIT
// The blocking client as a program, against the blocking server.
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "server_process.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Matches;
using course_test::exited;
using course_test::program;
using course_test::run_program;
using course_test::server_process;

TEST_CASE("01.4 the client gets 10,000 echoes of 1024 bytes", "[01.4]") {
  server_process server{program("01-server")};
  const auto client = run_program(program("01-client"), {"--port", std::to_string(server.port())});
  CHECK(client.status == exited(0));
  CHECK_THAT(client.stdout_text, Matches("10000 echoes of 1024 bytes in [0-9.]+ m?s\n"));
  CHECK(client.stderr_text.empty());
}

TEST_CASE("01.4 the client's summary says 1 echo and 1 byte, and how long they took", "[01.4]") {
  server_process server{program("01-server")};
  const auto client =
      run_program(program("01-client"), {"--port", std::to_string(server.port()), "--requests", "1",
                                         "--size", "1", "--pause-ms", "1200"});
  CHECK(client.status == exited(0));
  CHECK_THAT(client.stdout_text, Matches("1 echo of 1 byte in 1\\.[2-9] s\n"));
}

TEST_CASE("01 a client that nobody answers says so and exits with 1", "[01]") {
  const auto client = run_program(program("01-client"), {"--port", "1"});
  CHECK(client.status == exited(1));
  CHECK_THAT(client.stderr_text, ContainsSubstring("connect to 127.0.0.1:1: ECONNREFUSED"));
}
