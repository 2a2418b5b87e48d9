// SPDX-License-Identifier: MIT
// The main() that every server of the course shares: flags, signals, exit codes.
// Owns     nothing.
// Lifetime the stop_signal lives until `serve` has returned.
// Threads  call it from main(), before any thread exists.
// Errors   0 after a clean stop; 2 and a sentence for a bad flag; 1 and a sentence for anything
// that
//          `serve` throws, such as a port in use.
// Rule     SIGPIPE is ignored: write(2) and splice(2) to a closed peer would end the process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "stop_signal.hpp"

namespace common {

struct server_flags {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  int threads = 1;
};

// An on/off flag that one server has and the others do not.
struct extra_switch {
  std::string name;  // with its dashes
  std::string help;
  bool* value;
};

struct server_about {
  std::string summary;  // the first line of --help
  int threads_max = 1;  // 1: the server has one loop, and says so to --threads 2
  std::vector<extra_switch> switches = {};
};

using serve_function = std::function<void(const server_flags&, const stop_signal&)>;

[[nodiscard]] int server_main(int argc, char** argv, const server_about& about,
                              const serve_function& serve);

}  // namespace common
