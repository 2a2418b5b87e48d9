// SPDX-License-Identifier: MIT
// The HTTP/1.1 syntax that a client and a server share: words, numbers, lists, fields.
// Lifetime the text that a function returns is a part of its argument.
// Rule     an argument is a whole text, without the end of its line. If the text does not fit the
//          grammar, the result is empty, and the caller decides how lenient to be.
// See      rfc9110, sections 5.5 and 5.6; rfc9112, section 5
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace uring::http {

enum class body_end {
  none,     // there is no body
  counted,  // after a number of bytes
  chunked,  // with the chunk of size 0
  at_eof,   // when the server closes the connection
};

[[nodiscard]] constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

[[nodiscard]] constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

[[nodiscard]] constexpr bool is_letter_or_digit(char c) noexcept {
  return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z');
}

// Letters, digits, and some more bytes. It is a table because most bytes of a head are looked up.
class byte_set {
 public:
  explicit constexpr byte_set(std::string_view others) noexcept {
    for (std::size_t byte = 0; byte < is_in_.size(); ++byte) {
      const char c = static_cast<char>(byte);
      is_in_[byte] = is_letter_or_digit(c) || others.find(c) != std::string_view::npos;
    }
  }

  [[nodiscard]] constexpr bool has(char c) const noexcept {
    return is_in_[static_cast<unsigned char>(c)];
  }
  [[nodiscard]] constexpr bool has_all_of(std::string_view text) const noexcept {
    return std::ranges::all_of(text, [this](char c) { return has(c); });
  }

 private:
  std::array<bool, 256> is_in_{};
};

inline constexpr byte_set token_bytes{"!#$%&'*+-.^_`|~"};

// token = 1*tchar (rfc9110, 5.6.2)
[[nodiscard]] constexpr bool is_token(std::string_view text) noexcept {
  return !text.empty() && token_bytes.has_all_of(text);
}

// True if the two texts differ at most in the case of their letters.
[[nodiscard]] constexpr bool same_word(std::string_view left, std::string_view right) noexcept {
  return std::ranges::equal(left, right, [](char a, char b) { return lower(a) == lower(b); });
}

// Returns the text without the blanks and tabs at both ends.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) noexcept {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// `text` must consist of digits of that base, at least one, and the number must fit in 64 bits.
[[nodiscard]] inline std::optional<std::uint64_t> read_number(std::string_view text, int base) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number, base);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return number;
}

// Takes the next element off the front of a list such as "a, b ,, c"; returns nothing at the end.
// Elements that are empty do not count (rfc9110, 5.6.1.2).
[[nodiscard]] constexpr std::optional<std::string_view> next_of_list(std::string_view& list) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view element = trimmed(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (!element.empty()) return element;
  }
  return std::nullopt;
}

struct field {
  std::string_view name;
  std::string_view value;
};

// field-line = field-name ":" OWS field-value OWS. A blank before the colon is refused.
[[nodiscard]] constexpr std::optional<field> read_field(std::string_view line) noexcept {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return std::nullopt;
  return field{line.substr(0, colon), trimmed(line.substr(colon + 1))};
}

}  // namespace uring::http
