// SPDX-License-Identifier: MIT
#include "program.hpp"

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

namespace loadgen {
namespace {

constexpr int exit_failed = 1;
constexpr int exit_misuse = 2;
constexpr int exit_interrupted = 130;

int exit_code(const measurement& result) {
  if (result.interrupted) return exit_interrupted;
  return result.ok() ? 0 : exit_failed;
}

measurement try_run(const options& asked) {
  try {
    const common::stop_signal stop;
    return run(asked, stop);
  } catch (const std::exception& error) {
    measurement none;
    none.not_started = error.what();
    return none;
  }
}

int drive(const options& asked, std::ofstream& json) {
  std::fputs(describe_target(asked).c_str(), stdout);
  std::fflush(stdout);  // the run may take long, and a reader wants to know what runs
  const measurement result = try_run(asked);
  std::fputs(describe_result(asked, result).c_str(), stdout);
  for (const std::string& sentence : describe_trouble(result)) common::log(sentence);
  if (json.is_open() && !(json << to_json(asked, result) << std::flush)) {
    common::log("--json " + asked.json_file + ": not written, the disk may be full");
    return exit_failed;
  }
  return exit_code(result);
}

}  // namespace

int run_program(int argc, char** argv) {
  const auto parsed = parse_options(argc, argv);
  if (const int* const code = std::get_if<int>(&parsed)) return *code;
  const auto& asked = std::get<options>(parsed);
  std::ofstream json;
  if (!asked.json_file.empty()) {
    json.open(asked.json_file);  // before the run, so that a failure costs no measurement
    if (!json) {
      common::log("--json " + asked.json_file +
                  ": no such folder, or no permission to write there");
      return exit_misuse;
    }
  }
  ::signal(SIGPIPE, SIG_IGN);
  return drive(asked, json);
}

}  // namespace loadgen
