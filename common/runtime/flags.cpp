// SPDX-License-Identifier: MIT
#include "flags.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace common {

struct flag_set::implementation {
  CLI::App app;
};

flag_set::flag_set(const std::string& summary)
    : implementation_{new implementation{CLI::App{summary}}} {
  implementation_->app.get_formatter()->column_width(28);
}

flag_set::~flag_set() = default;

void flag_set::add(const std::string& name, std::string& value, const std::string& help) {
  implementation_->app.add_option(name, value, help)->capture_default_str();
}

void flag_set::add(const std::string& name, std::string& value,
                   const std::vector<std::string>& allowed, const std::string& help) {
  const auto is_allowed = [allowed](const std::string& text) -> std::string {
    if (std::ranges::find(allowed, text) != allowed.end()) return {};
    return fmt::format("takes one of {}", fmt::join(allowed, ", "));
  };
  implementation_->app.add_option(name, value, help)
      ->capture_default_str()
      ->check(CLI::Validator{is_allowed, fmt::format("{}", fmt::join(allowed, "|"))});
}

void flag_set::add(const std::string& name, std::uint16_t& value, const std::string& help) {
  implementation_->app.add_option(name, value, help)->capture_default_str();
}

void flag_set::add(const std::string& name, std::int64_t& value, std::int64_t min, std::int64_t max,
                   const std::string& help) {
  const auto in_range = [min, max](const std::string& text) -> std::string {
    if (CLI::Range(min, max)(text).empty()) return {};
    if (min == max) return fmt::format("takes {} in this program", min);
    return fmt::format("takes a whole number from {} to {}", min, max);
  };
  implementation_->app.add_option(name, value, help)->capture_default_str()->check(in_range);
}

void flag_set::add(const std::string& name, bool& value, const std::string& help) {
  implementation_->app.add_flag(name, value, help);
}

void flag_set::add_argument(const std::string& name, std::string& value, const std::string& help) {
  implementation_->app.add_option(name, value, help)->required();
}

void flag_set::add_argument(const std::string& name, std::vector<std::string>& values,
                            const std::string& help) {
  implementation_->app.add_option(name, values, help)->required();
}

std::optional<int> flag_set::parse(int argc, char** argv) {
  constexpr int exit_misuse = 2;
  try {
    implementation_->app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return implementation_->app.exit(error) == 0 ? 0 : exit_misuse;
  }
  return std::nullopt;
}

}  // namespace common
