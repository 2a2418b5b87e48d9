// SPDX-License-Identifier: MIT
// loadgen: drives an echo or HTTP server with a closed loop of clients.
//
//   loadgen echo --port 9000 --conns 50 --size 128 --requests 100000
#include <fmt/core.h>
#include <signal.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <variant>

#include "log.hpp"
#include "options.hpp"
#include "report.hpp"
#include "run.hpp"
#include "stop_signal.hpp"

namespace {

constexpr int exit_failed = 1;
constexpr int exit_misuse = 2;
constexpr int exit_interrupted = 130;

int exit_code(const loadgen::measurement& result) {
  if (result.interrupted) return exit_interrupted;
  return result.ok() ? 0 : exit_failed;
}

int drive(const loadgen::options& asked, std::ofstream& json) {
  const common::stop_signal stop;
  fmt::print("{}", loadgen::describe_target(asked));
  std::fflush(stdout);  // the run may take long, and a reader wants to know what runs
  const loadgen::measurement result = loadgen::run(asked, stop);
  fmt::print("{}", loadgen::describe_result(asked, result));
  for (const std::string& sentence : loadgen::describe_trouble(result)) common::log(sentence);
  if (json.is_open()) {
    json << loadgen::to_json(asked, result) << std::flush;
    if (!json) {
      common::log("cannot write " + asked.json_file);
      return exit_failed;
    }
  }
  return exit_code(result);
}

}  // namespace

int main(int argc, char** argv) {
  const auto parsed = loadgen::parse_options(argc, argv);
  if (const int* const code = std::get_if<int>(&parsed)) return *code;
  const auto& asked = std::get<loadgen::options>(parsed);
  std::ofstream json;
  if (!asked.json_file.empty()) {
    json.open(asked.json_file);  // before the run: nobody likes to hear of it afterwards
    if (!json) {
      common::log("--json " + asked.json_file + ": cannot be written");
      return exit_misuse;
    }
  }
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return drive(asked, json);
  } catch (const std::exception& error) {
    common::log(error.what());
    return exit_failed;
  }
}
