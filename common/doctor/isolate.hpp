// SPDX-License-Identifier: MIT
// One try in a process of its own, so that a kernel that hangs or kills it cannot take us along.
// Owns     the child until it has been waited for.
// Lifetime none: no child is left when the function returns.
// Threads  call it from a program with one thread: the child goes on after fork() alone.
// Errors   std::system_error if no process can be made. A child that crashes or hangs is a finding.
// See      fork(2), docs/reference/features.md
#pragma once

#include <chrono>

#include "feature_probe.hpp"

namespace doctor {

// More than the two waits that a try does at most; the tests set their own.
constexpr std::chrono::milliseconds isolation_deadline_ms{6000};

[[nodiscard]] finding try_isolated(const feature& wanted,
                                   std::chrono::milliseconds deadline_ms = isolation_deadline_ms);

}  // namespace doctor
