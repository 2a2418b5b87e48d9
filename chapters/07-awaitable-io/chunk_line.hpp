// SPDX-License-Identifier: MIT
// The line before a chunk: its size, and the extensions that may follow the size.
// Lifetime the extension is a part of the line.
// Errors   for a line that does not fit the grammar, the result is empty.
// See      rfc9112, section 7.1; rfc9110, section 5.6
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "http_grammar.hpp"

namespace uring::http {

// Takes a token off the front of `text`; false if there is none.
constexpr bool take_token(std::string_view& text) noexcept {
  const auto end = std::ranges::find_if_not(text, [](char c) { return token_bytes.has(c); });
  const auto bytes = static_cast<std::size_t>(end - text.begin());
  text.remove_prefix(bytes);
  return bytes > 0;
}

// Takes a quoted-string off the front of `text`; false if there is none (rfc9110, 5.6.4).
constexpr bool take_quoted(std::string_view& text) noexcept {
  if (!text.starts_with('"')) return false;
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;  // and skip the byte after the backslash, whatever it is
    } else if (text[at] == '"') {
      text.remove_prefix(at + 1);
      return true;
    }
  }
  return false;
}

// *( BWS ";" BWS name [ BWS "=" BWS value ] ), with no blank after the last extension.
[[nodiscard]] constexpr bool is_chunk_extension(std::string_view text) noexcept {
  const auto skip_blanks = [](std::string_view before) {
    return before.substr(std::min(before.find_first_not_of(" \t"), before.size()));
  };
  const auto take = [&](char wanted) {
    const std::string_view rest = skip_blanks(text);
    if (!rest.starts_with(wanted)) return false;
    text = skip_blanks(rest.substr(1));
    return true;
  };
  while (!text.empty()) {
    if (!take(';') || !take_token(text)) return false;
    if (take('=') && !take_token(text) && !take_quoted(text)) return false;
  }
  return true;
}

struct chunk_line {
  std::uint64_t bytes = 0;     // of the chunk that follows
  std::string_view extension;  // the text after the size
};

// chunk-size [ chunk-ext ]. A size of 64 bits has at most sixteen digits: more are refused.
[[nodiscard]] inline std::optional<chunk_line> read_chunk_line(std::string_view line) {
  constexpr std::size_t digits_max = 16;
  const std::size_t digits = std::min(line.find_first_of("; \t"), line.size());
  const std::string_view extension = line.substr(digits);
  const auto bytes = read_number(line.substr(0, digits), 16);
  if (!bytes || digits > digits_max || !is_chunk_extension(extension)) return std::nullopt;
  return chunk_line{*bytes, extension};
}

}  // namespace uring::http
