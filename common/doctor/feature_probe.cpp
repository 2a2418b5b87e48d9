// SPDX-License-Identifier: MIT
#include "feature_probe.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "advice.hpp"
#include "probe_error.hpp"
#include "probes.hpp"

namespace doctor {
namespace {

finding explain(const feature& wanted, int error, const char* what) {
  const advice told = advise(error, wanted.since, read_machine());
  return {.name = wanted.name,
          .ok = false,
          .error = error,
          .reason = fmt::format("{}: {}", what, told.cause),
          .fix = told.fix};
}

finding try_once(const feature& wanted) {
  try {
    wanted.attempt();
    return {.name = wanted.name, .ok = true, .error = 0, .reason = {}, .fix = {}};
  } catch (const probe_error& failure) {
    return explain(wanted, failure.error(), failure.what());
  } catch (const std::system_error& failure) {
    return explain(wanted, failure.code().value(), failure.what());
  } catch (const std::exception& failure) {
    return explain(wanted, 0, failure.what());
  }
}

}  // namespace

std::span<const feature> all_features() {
  static const std::vector<feature> catalogue = [] {
    std::vector<feature> all;
    for (const auto part : {setup_probes(), network_probes(), buffer_probes(), file_probes(),
                            control_probes(), opcode_probes()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return catalogue;
}

const feature* find_feature(std::string_view name) {
  const auto all = all_features();
  const auto found =
      std::ranges::find_if(all, [&](const feature& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

finding try_feature(const feature& wanted) {
  finding found = try_once(wanted);
  for (int tries_left = 10; found.error == ENOMEM && tries_left > 0; --tries_left) {
    // The kernel gives back a closed ring's locked memory a few milliseconds late, so where the
    // limit is low, the ring of the previous try may still take the memory that this one needs.
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
    found = try_once(wanted);
  }
  return found;
}

}  // namespace doctor
