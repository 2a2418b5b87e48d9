// SPDX-License-Identifier: MIT
// 08-fetch: makes GETs, a window of them at a time, and prints a line for each, in the order given.
//
//   ./course run 08:fetch -- --window 4 localhost:8000/a localhost:8000/b localhost:8000/c
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "fetching.hpp"
#include "http_address.hpp"
#include "io_context.hpp"
#include "program_main.hpp"

namespace {

// Returns how many fetches failed.
std::size_t print(const std::vector<std::string>& addresses,
                  const std::vector<uring::fetched>& results, bool bodies) {
  std::size_t failures = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const uring::fetched& each = results[i];
    if (!each.failure.empty()) {
      ++failures;
      std::fprintf(stderr, "%s: %s\n", addresses[i].c_str(), each.failure.c_str());
    } else if (bodies) {
      std::fwrite(each.body.data(), 1, each.body.size(), stdout);
    } else {
      std::printf("%s: %zu bytes\n", addresses[i].c_str(), each.body.size());
    }
  }
  return failures;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> addresses;
  std::int64_t window = 4;
  std::int64_t timeout_ms = 10'000;
  bool fail_fast = false;
  bool bodies = false;
  common::flag_set flags{"Chapter 08: several GETs at the same time."};
  flags.add_argument("ADDRESS", addresses, "HOST:PORT/PATH, any number of them");
  flags.add("--window", window, 1, 1000, "How many are in flight at most");
  flags.add("--timeout-ms", timeout_ms, 1, 86'400'000, "How long one of them may take");
  flags.add("--fail-fast", fail_fast, "The first failure cancels the others");
  flags.add("--bodies", bodies, "Print the bodies in order, not the lines");
  return common::program_main(argc, argv, flags, [&] {
    std::vector<uring::http::get_request> requests;
    requests.reserve(addresses.size());
    for (const std::string& each : addresses) requests.push_back(uring::http::parse_address(each));
    uring::io_context context;
    uring::fetching all{
        context,
        {.window = static_cast<std::size_t>(window),
         .timeout = std::chrono::milliseconds{timeout_ms},
         .after = fail_fast ? uring::on_failure::cancel_the_others : uring::on_failure::go_on}};
    const std::vector<uring::fetched> results = context.run(all.run(std::move(requests)));
    const std::size_t failures = print(addresses, results, bodies);
    if (failures > 0) {
      throw std::runtime_error{std::to_string(failures) + " of " + std::to_string(results.size()) +
                               " failed"};
    }
  });
}
