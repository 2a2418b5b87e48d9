// SPDX-License-Identifier: MIT
// Where the body of a request ends, as the request's head says it.
// See      rfc9112, sections 6.1 and 6.3; rfc9110, section 8.6
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "http_grammar.hpp"

namespace uring::http {

struct body_framing {
  body_end ends = body_end::none;
  std::uint64_t bytes = 0;  // only if `ends` is counted

  [[nodiscard]] bool has_body() const noexcept { return ends == body_end::chunked || bytes > 0; }
};

// The content of Content-Length and Transfer-Encoding. Each field may be on several lines.
struct framing_fields {
  bool has_length = false;       // there is a Content-Length
  bool is_length_clear = true;   // all of its values are numbers, and all are the same
  std::uint64_t length = 0;      // that number
  bool has_coding = false;       // there is a Transfer-Encoding
  bool is_chunked_last = false;  // the last coding is chunked
  int chunked = 0;               // how often chunked is among the codings
  int others = 0;                // how many other codings there are

  void on_content_length(std::string_view list) noexcept {
    std::optional<std::string_view> element = next_of_list(list);
    if (!element) is_length_clear = false;
    for (; element; element = next_of_list(list)) {
      const std::optional<std::uint64_t> number = read_number(*element, 10);
      const bool is_same = !has_length || number == length;
      is_length_clear = is_length_clear && number && is_same;
      length = number.value_or(0);
      has_length = true;
    }
    has_length = true;
  }

  void on_transfer_encoding(std::string_view list) noexcept {
    has_coding = true;
    while (const std::optional<std::string_view> element = next_of_list(list)) {
      is_chunked_last = same_word(*element, "chunked");
      ++(is_chunked_last ? chunked : others);
    }
  }
};

}  // namespace uring::http
