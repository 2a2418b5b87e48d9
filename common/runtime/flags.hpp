// SPDX-License-Identifier: MIT
// The command-line flags of a program.
// Owns     the flag table; the values belong to the caller.
// Lifetime every variable given to add() must live until parse() has returned.
// Threads  main(), before any other thread.
// Errors   parse() prints a sentence for a bad flag and gives exit code 2; nothing throws.
// Rule     only flags.cpp includes CLI11, because each file that does compiles a second longer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace common {

class flag_set {
 public:
  explicit flag_set(const std::string& summary);
  flag_set(flag_set&&) = delete;
  ~flag_set();

  // `name` has its dashes. The variable's value before parse() is the default, and --help shows it.
  void add(const std::string& name, std::string& value, const std::string& help);
  void add(const std::string& name, std::string& value, const std::vector<std::string>& allowed,
           const std::string& help);
  void add(const std::string& name, std::uint16_t& value, const std::string& help);
  void add(const std::string& name, std::int64_t& value, std::int64_t min, std::int64_t max,
           const std::string& help);
  void add(const std::string& name, bool& value, const std::string& help);

  // Not a flag, but a word that must be there at its place: HOST in `http_client HOST PATH`.
  void add_argument(const std::string& name, std::string& value, const std::string& help);
  // The last word, once or several times: `FILE` in `count_chars FILE...`.
  void add_argument(const std::string& name, std::vector<std::string>& values,
                    const std::string& help);

  // If the result is empty, go on. A number is the exit code: 0 after --help, 2 after misuse.
  [[nodiscard]] std::optional<int> parse(int argc, char** argv);

 private:
  struct implementation;
  std::unique_ptr<implementation> implementation_;
};

}  // namespace common
