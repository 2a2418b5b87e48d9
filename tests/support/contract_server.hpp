// SPDX-License-Identifier: MIT
// What the cases of the echo contract share: the server under test, and a few ways to press it.
// Threads  one thread a process: Catch2's.
// Errors   std::runtime_error if COURSE_SERVER does not say which server to test.
// Rule     COURSE_SERVER is the program, COURSE_SERVER_ARGS its further arguments, split at spaces,
//          COURSE_SANITIZE the sanitizer that it was built with, if any.
// See      course_echo_contract() in cmake/chapter.cmake, which sets all three
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "client.hpp"
#include "server_process.hpp"
#include "stalled_client.hpp"

namespace course_test {

[[nodiscard]] std::filesystem::path contract_program();
[[nodiscard]] std::vector<std::string> contract_arguments();
[[nodiscard]] server_process start_contract_server(const child_options& options = {});

// One CHECK: a new client is served. Put UNSCOPED_INFO with the usual cause before it.
void check_still_serves(const server_process& server);

// The CPU time of all the server's threads during `wall`: the least of several measurements, for on
// a busy machine even a waiting server uses some, and may still be at what came before. A server
// that waits uses next to none. One that spins may still get little on a busy machine: so compare
// with 5 % and less.
[[nodiscard]] milliseconds cpu_used_during(milliseconds wall, const server_process& server);

// Whether the server was built with a sanitizer: then its memory is mostly the sanitizer's.
[[nodiscard]] bool is_sanitized();

}  // namespace course_test
