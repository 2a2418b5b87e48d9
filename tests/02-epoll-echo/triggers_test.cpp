// SPDX-License-Identifier: MIT
// The page's experiments: what level and edge report for the same ten bytes, and a client that does
// not read.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "child_process.hpp"

TEST_CASE("02 level reports until the pipe is empty, edge reports once", "[02]") {
  const auto run = course_test::run_program(course_test::program("02-triggers"), {});
  CHECK(run.status == course_test::exited(0));
  CHECK(run.stdout_text ==
        "level: ready, read 4, 6 left\n"
        "level: ready, read 4, 2 left\n"
        "level: ready, read 2, 0 left\n"
        "level: no news, 0 left in the pipe\n"
        "edge: ready, read 4, 6 left\n"
        "edge: no news, 6 left in the pipe\n");
}

TEST_CASE("02 bytes that a client does not read are kept until it reads", "[02]") {
  using Catch::Matchers::Matches;
  const auto run = course_test::run_program(course_test::program("02-stall"), {});
  CHECK(run.status == course_test::exited(0));
  CHECK_THAT(run.stdout_text,
             Matches("the client sends 65536 bytes and reads nothing\n"
                     "  the server keeps [1-9][0-9]* bytes\n"
                     "(the client reads [1-9][0-9]* bytes\n"
                     "  the server keeps [0-9]+ bytes and waits for EPOLL(IN|OUT)\n)*"
                     "the client reads [1-9][0-9]* bytes\n"
                     "  the server keeps 0 bytes and waits for EPOLLIN\n"));
}
