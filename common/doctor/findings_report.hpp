// SPDX-License-Identifier: MIT
// What the doctor found, as text for a reader or as JSON for a program.
// Lifetime the spans are read until the call returns.
// Rule     as_json() is one document, and its keys are the interface of `doctor --json`.
// See      docs/reference/features.md
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "advice.hpp"
#include "feature_probe.hpp"

namespace doctor {

[[nodiscard]] std::string as_json(const machine& here, std::string_view liburing_version,
                                  std::span<const finding> findings);

[[nodiscard]] std::string as_text(const machine& here, std::string_view liburing_version,
                                  std::span<const finding> findings);

}  // namespace doctor
