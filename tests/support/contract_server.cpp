// SPDX-License-Identifier: MIT
#include "contract_server.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "patience.hpp"

namespace course_test {

std::filesystem::path contract_program() {
  const char* const path = std::getenv("COURSE_SERVER");
  if (path != nullptr) return path;
  throw std::runtime_error{
      "COURSE_SERVER does not say which server to test: run this through ctest -L contract, or set "
      "it to a program such as build/reference/bin/01-server"};
}

std::vector<std::string> contract_arguments() {
  const char* const text = std::getenv("COURSE_SERVER_ARGS");
  std::istringstream words{text != nullptr ? text : ""};
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) arguments.push_back(word);
  return arguments;
}

server_process start_contract_server(const child_options& options) {
  return server_process{contract_program(), contract_arguments(), options};
}

void check_still_serves(const server_process& server) {
  CHECK(client{server.port()}.echo("are you there?") == "are you there?");
}

milliseconds cpu_used_during(milliseconds wall, const server_process& server) {
  const int windows_max = 5 * patience();  // a server that spins does so in each of them
  milliseconds least = wall;
  for (int window = 0; window < windows_max && least * 40 > wall; ++window) {
    const auto before = server.cpu_time();
    std::this_thread::sleep_for(wall);  // the one place where time itself is what is measured
    const auto used = server.cpu_time() - before;
    least = std::min(least, std::chrono::duration_cast<milliseconds>(used));
  }
  return least;
}

bool is_sanitized() {
  const char* const sanitizer = std::getenv("COURSE_SANITIZE");
  return sanitizer != nullptr && *sanitizer != '\0';
}

}  // namespace course_test
