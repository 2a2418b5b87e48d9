// SPDX-License-Identifier: MIT
// The page's experiment: what level and edge report for the same ten bytes.
#include <catch2/catch_test_macros.hpp>

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
