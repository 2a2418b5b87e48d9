// SPDX-License-Identifier: MIT
// The command line: what to send, where to, how much, and what to write.
// Threads  main().
// Errors   parse_options() has said what is wrong and gives the exit code: 2, or 0 for --help.
// Rule     every number has a range, and it is checked here and nowhere else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace loadgen {

enum class protocol { echo, http };

struct options {
  protocol mode = protocol::echo;
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::uint32_t connections = 50;
  std::uint32_t message_bytes = 128;  // echo only
  std::string path = "/";             // http only
  std::uint32_t inflight = 1;
  std::uint32_t threads = 1;
  std::optional<std::uint64_t> requests;  // over all connections; else a run by time
  double duration_s = 5;
  double warmup_s = 0;
  double stall_timeout_s = 5;
  std::string json_file;  // empty: none
};

[[nodiscard]] std::variant<options, int> parse_options(int argc, char** argv);

}  // namespace loadgen
