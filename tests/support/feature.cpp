// SPDX-License-Identifier: MIT
#include "feature.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>
#include <map>
#include <string>

#include "feature_probe.hpp"

namespace course_test {
namespace {

const doctor::finding& tried_once(const doctor::feature& wanted) {
  static std::map<std::string_view, doctor::finding> answers;
  const auto known = answers.find(wanted.name);
  if (known != answers.end()) return known->second;
  return answers.emplace(wanted.name, doctor::try_feature(wanted)).first->second;
}

std::string sentence(const doctor::finding& missing) {
  return "this machine cannot do " + std::string{missing.name} + "\n  why: " + missing.reason +
         "\n  fix: " + missing.fix;
}

enum class missing_means { skip, failure };

missing_means policy() {
  const char* const wish = std::getenv("COURSE_REQUIRE_FEATURES");
  return wish != nullptr && std::string_view{wish} == "1" ? missing_means::failure
                                                          : missing_means::skip;
}

}  // namespace

void require_feature(std::string_view name) {
  const doctor::feature* const wanted = doctor::find_feature(name);
  if (wanted == nullptr) {
    FAIL("require_feature(\"" << name << "\"): the doctor knows no feature of this name. "
                              << "docs/reference/features.md lists them.");
  }
  const doctor::finding& answer = tried_once(*wanted);
  if (answer.ok) return;
  if (policy() == missing_means::failure) {
    FAIL(sentence(answer) << "\n  COURSE_REQUIRE_FEATURES=1 makes this a failure, not a skip.");
  }
  SKIP(sentence(answer));
}

}  // namespace course_test
