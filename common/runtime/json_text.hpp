// SPDX-License-Identifier: MIT
// A string as JSON writes it.
// Errors   none; bytes that are no UTF-8 go through as they are.
#pragma once

#include <string>
#include <string_view>

namespace common {

// The result has its quotation marks, and special characters between them are escaped.
[[nodiscard]] std::string json_text(std::string_view text);

}  // namespace common
