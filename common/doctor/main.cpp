// SPDX-License-Identifier: MIT
// doctor: tries every io_uring feature of the course on this kernel.
//
//   doctor                              what does not work here, why, and the fix
//   doctor --json                       all of it, for a program
//   doctor --feature multishot_accept   exit code 0 if it works, 1 if not
#include <cstdio>
#include <string>
#include <vector>

#include "advice.hpp"
#include "feature_probe.hpp"
#include "findings_report.hpp"
#include "flags.hpp"
#include "isolate.hpp"
#include "log.hpp"
#include "program_main.hpp"

namespace {

struct doctor_flags {
  bool json = false;
  std::string feature;
};

// Without a ring nothing else can work, so every feature then gets the ring's reason.
std::vector<doctor::finding> try_everything() {
  std::vector<doctor::finding> findings;
  for (const doctor::feature& each : doctor::all_features()) {
    if (findings.empty() || findings.front().ok) {
      findings.push_back(doctor::try_isolated(each));
    } else {
      findings.push_back(findings.front());
      findings.back().name = each.name;
    }
  }
  return findings;
}

// The exit code is 0 whatever was found, unless one feature was asked for by name.
int examine(const doctor_flags& wanted) {
  std::vector<doctor::finding> findings;
  if (wanted.feature.empty()) {
    findings = try_everything();
  } else if (const auto* const named = doctor::find_feature(wanted.feature)) {
    findings.push_back(doctor::try_isolated(*named));
  } else {
    common::log("--feature " + wanted.feature + ": there is no such feature; --json lists them");
    return 2;
  }
  const doctor::machine here = doctor::read_machine();
  const auto report = wanted.json ? &doctor::as_json : &doctor::as_text;
  std::fputs(report(here, COURSE_LIBURING_VERSION, findings).c_str(), stdout);
  return wanted.feature.empty() || findings.front().ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  doctor_flags wanted;
  common::flag_set flags{"Tries every io_uring feature of the course on this kernel."};
  flags.add("--json", wanted.json, "Print everything, as one JSON document");
  flags.add("--feature", wanted.feature, "Try one feature; exit 1 if it does not work");
  int exit_code = 0;
  const int ended = common::program_main(argc, argv, flags, [&] { exit_code = examine(wanted); });
  return ended != 0 ? ended : exit_code;
}
