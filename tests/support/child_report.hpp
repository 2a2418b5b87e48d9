// SPDX-License-Identifier: MIT
// Prints, below a failed test case, what its child processes said and how they ended.
// Owns     one question for each child of the test case that runs, until it has ended.
// Lifetime a question may outlive its child_process: a failed REQUIRE destroys it first.
// Threads  the test's own.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace course_test {

struct child_report {
  std::string state;  // "01-server (pid 17) ended by itself: it was killed by signal 6 (…)"
  std::string stderr_text;
};

// The answer is empty if a message of the test already tells it.
void report_on_failure(std::function<std::optional<child_report>()> question);

}  // namespace course_test
