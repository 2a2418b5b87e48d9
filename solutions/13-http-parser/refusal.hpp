// SPDX-License-Identifier: MIT
// Why a request is not served, and the status that says so to the client.
// Rule     the connection is closed after the answer, because we no longer know where the next
//          request begins, and request smuggling depends on servers that guess this. (If a request
//          was parsed, we know where it ends: plain_path.hpp refuses only such requests.)
// See      rfc9112, sections 6.3 and 11.2
#pragma once

#include <string_view>

namespace uring::http {

struct refusal {
  int status = 0;        // 400 or another one; 0 if nothing is refused
  std::string_view why;  // a literal, for a log and for tests

  constexpr explicit operator bool() const noexcept { return status != 0; }
};

[[nodiscard]] constexpr refusal bad_request(std::string_view why) noexcept {
  return {.status = 400, .why = why};
}

}  // namespace uring::http
