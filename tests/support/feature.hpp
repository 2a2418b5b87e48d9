// SPDX-License-Identifier: MIT
// What a test needs of the kernel, in one line at its start.
// Owns     nothing; an answer is kept for the life of the process.
// Threads  the test's own, before it starts others: it ends the test case.
// Errors   a missing feature is a SKIP with its reason and the fix; with COURSE_REQUIRE_FEATURES=1,
//          as in CI and in grading, it is a failure. A name that no feature has is always one.
// Rule     chapter.toml lists the same names, and docs/reference/features.md explains them.
#pragma once

#include <string_view>

namespace course_test {

// require_feature("multishot_accept");
void require_feature(std::string_view name);

}  // namespace course_test
