// SPDX-License-Identifier: MIT
// The main() of every test program, and its reporter: it prints as Catch2's console reporter does,
// but breaks no line at 80 columns, so that ./course can show a message as its author wrote it.
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_case_info.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#include <catch2/reporters/catch_reporter_streaming_base.hpp>
#include <sstream>
#include <string>
#include <string_view>

namespace {

using Catch::ResultWas;

std::string_view label_of_messages(ResultWas::OfType type) {
  switch (type) {
    case ResultWas::ThrewException:
      return "due to unexpected exception with message";
    case ResultWas::DidntThrowException:
      return "because no exception was thrown where one was expected";
    case ResultWas::FatalErrorCondition:
      return "due to a fatal error condition";
    case ResultWas::ExplicitFailure:
    case ResultWas::ExplicitSkip:
      return "explicitly with message";
    default:
      return "with message";
  }
}

class whole_lines : public Catch::StreamingReporterBase {
 public:
  using StreamingReporterBase::StreamingReporterBase;

  static std::string getDescription() { return "as console, and no line is broken"; }

  void assertionEnded(const Catch::AssertionStats& stats) override {
    const auto& result = stats.assertionResult;
    const auto type = result.getResultType();
    if (result.isOk() && type != ResultWas::ExplicitSkip) return;
    print_title();
    m_stream << result.getSourceInfo()
             << (type == ResultWas::ExplicitSkip ? ": SKIPPED:\n" : ": FAILED:\n");
    if (result.hasExpression()) print_indented(result.getExpressionInMacro());
    if (result.hasExpandedExpression()) {
      m_stream << "with expansion:\n";
      print_indented(result.getExpandedExpression());
    }
    if (!stats.infoMessages.empty() || type == ResultWas::DidntThrowException) {
      m_stream << label_of_messages(type) << ":\n";
    }
    for (const auto& info : stats.infoMessages) print_indented(info.message);
    m_stream << std::endl;  // flushed: the test may crash next
  }

  void testRunEnded(const Catch::TestRunStats& stats) override {
    const auto& cases = stats.totals.testCases;
    m_stream << std::string(79, '=') << "\ntest cases: " << cases.total() << " | " << cases.passed
             << " passed | " << cases.failed << " failed" << std::endl;
    StreamingReporterBase::testRunEnded(stats);
  }

 private:
  // The test's name and, below it, the sections that the assertion is in.
  void print_title() {
    const std::string line(79, '-');
    m_stream << line << '\n' << currentTestCaseInfo->name << '\n';
    for (const auto& each : m_sectionStack) {
      if (each.name != currentTestCaseInfo->name) print_indented(each.name);
    }
    m_stream << line << '\n';
  }

  void print_indented(const std::string& text) {
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) m_stream << "  " << line << '\n';
  }
};

CATCH_REGISTER_REPORTER("whole-lines", whole_lines)

}  // namespace

int main(int argc, char* argv[]) {
  Catch::Session session;
  if (const int wrong = session.applyCommandLine(argc, argv); wrong != 0) return wrong;
  auto& reporters = session.configData().reporterSpecifications;
  if (reporters.empty()) reporters.push_back({"whole-lines", {}, {}, {}});
  return session.run();
}
