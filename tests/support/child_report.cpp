// SPDX-License-Identifier: MIT
#include "child_report.hpp"

#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#include <iostream>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace course_test {
namespace {

constexpr std::size_t shown_bytes_max = 8 * 1024;  // of each child's stderr: its start and its end

// Catch2 makes the listener itself and hands it to nobody, so what it asks has to be global.
std::vector<std::function<std::optional<child_report>()>>& questions() {
  static std::vector<std::function<std::optional<child_report>()>> all;
  return all;
}

std::string shortened(const std::string& text) {
  if (text.size() <= shown_bytes_max) return text;
  const std::size_t half = shown_bytes_max / 2;
  return text.substr(0, half) + "\n[…]\n" + text.substr(text.size() - half);
}

void print_indented(std::ostream& out, const std::string& text) {
  std::istringstream lines{shortened(text)};
  for (std::string line; std::getline(lines, line);) out << "    " << line << '\n';
}

void print(std::ostream& out, const child_report& report) {
  out << report.state
      << (report.stderr_text.empty() ? "; it printed nothing on stderr\n" : "; its stderr:\n");
  print_indented(out, report.stderr_text);
}

class child_reporter : public Catch::EventListenerBase {
 public:
  using EventListenerBase::EventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo&) override { questions().clear(); }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    const auto asked = std::exchange(questions(), {});
    if (stats.totals.assertions.failed == 0) return;
    // stderr: stdout may hold a report for a machine, such as JUnit's.
    std::cout.flush();
    for (const auto& ask : asked) {
      if (const auto report = ask()) print(std::cerr, *report);
    }
    std::cerr.flush();
  }
};

CATCH_REGISTER_LISTENER(child_reporter)

}  // namespace

void report_on_failure(std::function<std::optional<child_report>()> question) {
  questions().push_back(std::move(question));
}

}  // namespace course_test
