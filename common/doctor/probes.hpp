// SPDX-License-Identifier: MIT
// The parts of the catalogue: each file of probes lists its features beside the code for them.
// Owns     nothing; the spans point at constants.
// Lifetime static.
// Errors   every `attempt` throws probe_error, or std::system_error from a plain system call.
// Rule     a new feature is one entry and one function in one of these files, and one row in
//          docs/reference/features.md.
#pragma once

#include <span>

#include "feature_probe.hpp"

namespace doctor {

std::span<const feature> setup_probes();
std::span<const feature> network_probes();
std::span<const feature> buffer_probes();
std::span<const feature> file_probes();
std::span<const feature> control_probes();
std::span<const feature> opcode_probes();

}  // namespace doctor
