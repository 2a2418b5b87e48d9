// SPDX-License-Identifier: MIT
// A string as JSON writes it.
// Errors   none; bytes that are no UTF-8 go through as they are.
#pragma once

#include <string>
#include <string_view>

namespace common {

// With its quotation marks, and with what is special between them escaped.
[[nodiscard]] std::string json_text(std::string_view text);

}  // namespace common
