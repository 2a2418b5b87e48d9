// SPDX-License-Identifier: MIT
// 08-count_chars: counts a character in each of many files, and in all of them together.
//
//   ./course run 08:count_chars -- --how ring --char e docs/chapters/*.md
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "counting.hpp"
#include "program_main.hpp"

namespace {

uring::file_counts count(const std::string& how, const uring::file_names& names, char wanted,
                         std::size_t window) {
  if (how == "threads") return uring::count_in_threads(names, wanted, window);
  if (how == "ring") return uring::count_on_ring(names, wanted, window);
  return uring::count_sequentially(names, wanted);
}

// Accepts "\n" and "\t" as they are typed, or one byte.
char parse_char(const std::string& text) {
  if (text == "\\n") return '\n';
  if (text == "\\t") return '\t';
  if (text.size() == 1) return text.front();
  throw std::runtime_error{"--char takes one character, \\n or \\t; “" + text + "” is none"};
}

// Returns how many files failed.
std::size_t print(const uring::file_names& names, const uring::file_counts& counts) {
  uring::file_count total;
  std::size_t failures = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    total.bytes += counts[i].bytes;
    total.matches += counts[i].matches;
    if (!counts[i].failure.empty()) {
      ++failures;
      std::fprintf(stderr, "%s: %s\n", names[i].c_str(), counts[i].failure.c_str());
      continue;
    }
    std::printf("%10ju of %10ju  %s\n", std::uintmax_t{counts[i].matches},
                std::uintmax_t{counts[i].bytes}, names[i].c_str());
  }
  std::printf("%10ju of %10ju  in all\n", std::uintmax_t{total.matches},
              std::uintmax_t{total.bytes});
  return failures;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names;
  std::string how = "ring";
  std::string wanted = "\\n";
  std::int64_t window = 16;
  common::flag_set flags{"Chapter 08: counts a character in many files."};
  flags.add_argument("FILE", names, "The files, any number of them");
  flags.add("--how", how, {"sequential", "threads", "ring"}, "One after the other, or several");
  flags.add("--char", wanted, "What to count: one character, \\n or \\t");
  flags.add("--window", window, 1, 1000, "Files at a time: threads, or tasks on one thread");
  return common::program_main(argc, argv, flags, [&] {
    const char byte = parse_char(wanted);
    const auto began = std::chrono::steady_clock::now();
    const uring::file_counts counts = count(how, names, byte, static_cast<std::size_t>(window));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    const std::size_t failures = print(names, counts);
    std::fprintf(stderr, "%s: %.1f ms\n", how.c_str(), took.count());
    if (failures > 0) throw std::runtime_error{std::to_string(failures) + " could not be read"};
  });
}
