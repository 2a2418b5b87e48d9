// SPDX-License-Identifier: MIT
// The main() that the programs of the course share: flags, signals, exit codes.
// Lifetime the stop_signal that `serve` is given lives until `serve` has returned.
// Threads  call it from main(), before any other thread exists.
// Errors   the exit code is 0 if the work has returned, 2 (with a sentence) for a bad flag, and 1
//          (with a sentence) for an exception of the work, such as that of a port in use.
// Rule     SIGPIPE is ignored: write(2) and splice(2) to a closed peer would end the process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "flags.hpp"
#include "stop_signal.hpp"

namespace common {

[[nodiscard]] int program_main(int argc, char** argv, flag_set& flags,
                               const std::function<void()>& work);

struct server_flags {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::int64_t threads = 1;
};

struct server_limits {
  std::int64_t threads_max = 1;
};

// The flags that every server takes. `values` must live until parse() has returned.
void add_server_flags(flag_set& flags, server_flags& values, const server_limits& limits);

// program_main with those flags and the stop signal. `flags` may hold more of the program's own.
[[nodiscard]] int server_main(
    int argc, char** argv, flag_set& flags, const server_limits& limits,
    const std::function<void(const server_flags&, const stop_signal&)>& serve);

}  // namespace common
