// SPDX-License-Identifier: MIT
// Finds in a text the bytes that no line of HTTP may hold.
// Rule     it reads eight bytes at a time, and none past the end of the text.
// See      rfc9110, section 5.5: a recipient refuses or replaces CR, LF and NUL in a value
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace uring::http {

// NUL to 0x1f, and DEL. A tab is no control byte here: it may stand where a blank may.
[[nodiscard]] constexpr bool is_control(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

// Sets the high bit of each byte of `word` that is less than 0x20 or is 0x7f. Only the lowest bit
// that is set is certain, because a subtraction may borrow from the byte above.
[[nodiscard]] constexpr std::uint64_t low_or_del(std::uint64_t word) noexcept {
  constexpr std::uint64_t ones = 0x0101'0101'0101'0101;
  const std::uint64_t del = word ^ (ones * 0x7f);  // zero in each byte that was DEL
  return (((word - ones * 0x20) & ~word) | ((del - ones) & ~del)) & (ones * 0x80);
}

// The place of the first control byte at or after `from`; text.size() if there is none.
[[nodiscard]] inline std::size_t find_control(std::string_view text, std::size_t from) noexcept {
  static_assert(std::endian::native == std::endian::little, "the lowest bit is of the first byte");
  std::size_t at = from;
  while (at + sizeof(std::uint64_t) <= text.size()) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof word);
    const std::uint64_t found = low_or_del(word);
    if (found == 0) {
      at += sizeof word;
      continue;
    }
    at += static_cast<std::size_t>(std::countr_zero(found)) / 8;
    if (is_control(text[at])) return at;
    ++at;  // a tab
  }
  while (at < text.size() && !is_control(text[at])) ++at;
  return at;
}

}  // namespace uring::http
