// SPDX-License-Identifier: MIT
#include "findings_report.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <cstring>

#include "json_text.hpp"

namespace doctor {
namespace {

using common::json_text;
using common::memlock_unlimited;
using common::place;
using common::seccomp;
using common::sysctl;

constexpr int schema_version = 1;

std::string_view name_of(place where) {
  switch (where) {
    case place::bare:
      return "none";
    case place::docker:
      return "docker";
    case place::podman:
      return "podman";
    case place::kubernetes:
      return "kubernetes";
    case place::other_container:
      return "other";
    case place::wsl1:
      return "wsl1";
    case place::wsl2:
      return "wsl2";
  }
  return "none";
}

std::string_view number_of(sysctl setting) {
  switch (setting) {
    case sysctl::open:
      return "0";
    case sysctl::privileged_only:
      return "1";
    case sysctl::closed:
      return "2";
    case sysctl::absent:
      break;
  }
  return "null";
}

std::string machine_json(const machine& here) {
  const std::string memlock =
      here.memlock_bytes == memlock_unlimited ? "null" : fmt::format("{}", here.memlock_bytes);
  const char* const filtered = here.filter == seccomp::unknown    ? "null"
                               : here.filter == seccomp::filtered ? "true"
                                                                  : "false";
  return fmt::format(
      "{{\"kernel\":{},\"container\":{},\"seccomp_filter\":{},\"io_uring_disabled\":{},"
      "\"memlock_bytes\":{}}}",
      json_text(here.kernel_release), json_text(name_of(here.where)), filtered,
      number_of(here.io_uring_disabled), memlock);
}

std::string finding_json(const finding& found) {
  const feature& about = *find_feature(found.name);
  const char* const symbol = found.error == 0 ? nullptr : ::strerrorname_np(found.error);
  return fmt::format(
      "{{\"name\":{},\"group\":{},\"since\":{},\"summary\":{},\"ok\":{},\"error\":{},\"errno\":{},"
      "\"reason\":{},\"fix\":{}}}",
      json_text(about.name), json_text(about.group), json_text(about.since),
      json_text(about.summary), found.ok, found.error,
      symbol == nullptr ? "null" : json_text(symbol), json_text(found.reason),
      json_text(found.fix));
}

std::string failure_text(const finding& found) {
  const feature& about = *find_feature(found.name);
  return fmt::format("  no   {}: {}\n       why: {}\n       fix: {}\n", about.name, about.summary,
                     found.reason, found.fix);
}

// One line when the whole group works; its failures below it otherwise.
std::string group_text(std::span<const finding> group) {
  std::size_t working = 0;
  std::string failures;
  for (const finding& each : group) {
    if (each.ok) {
      ++working;
    } else {
      failures += failure_text(each);
    }
  }
  return fmt::format("{:8} {} of {} work\n{}", find_feature(group.front().name)->group, working,
                     group.size(), failures);
}

std::string groups_text(std::span<const finding> findings) {
  const auto group_of = [](const finding& each) {
    return std::string_view{find_feature(each.name)->group};
  };
  std::string text;
  while (!findings.empty()) {
    std::size_t length = 1;
    while (length < findings.size() && group_of(findings[length]) == group_of(findings[0])) {
      ++length;
    }
    text += group_text(findings.first(length));
    findings = findings.subspan(length);
  }
  return text;
}

}  // namespace

std::string as_json(const machine& here, std::string_view liburing_version,
                    std::span<const finding> findings) {
  std::string features;
  for (const finding& found : findings) {
    if (!features.empty()) features += ",\n";
    features += finding_json(found);
  }
  return fmt::format("{{\"schema\":{},\"liburing\":{},\"machine\":{},\"features\":[\n{}\n]}}\n",
                     schema_version, json_text(liburing_version), machine_json(here), features);
}

std::string as_text(const machine& here, std::string_view liburing_version,
                    std::span<const finding> findings) {
  std::string text =
      fmt::format("Linux {}, liburing {}. Everything below was checked just now.\n\n",
                  here.kernel_release, liburing_version);
  if (!findings.empty() && findings.front().name == "ring" && !findings.front().ok) {
    return text + fmt::format(
                      "io_uring cannot be used here.\n  why: {}\n  fix: {}\n\n"
                      "Chapters 01 to 03 need none of it; 04 and later do.\n",
                      findings.front().reason, findings.front().fix);
  }
  return text + groups_text(findings);
}

}  // namespace doctor
