// SPDX-License-Identifier: MIT
// The parts of a file that a Range field asks for: "bytes=0-99,-100".
// Rule     a client that asks for too many ranges, or not in this form, gets the whole file.
// See      rfc9110, sections 14.1 and 14.2
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "http_grammar.hpp"

namespace uring::http {

struct byte_range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // the last byte of the range, included

  bool operator==(const byte_range&) const = default;
};

enum class range_outcome {
  ignored,        // another unit, bad grammar, more ranges than fit into the span, an empty file
  unsatisfiable,  // no range begins within the file: the answer is 416
  some,
};

struct ranges_read {
  range_outcome outcome = range_outcome::ignored;
  std::size_t count = 0;  // of the ranges that begin within the file, in the order asked for
};

// A number that does not fit into 64 bits counts as larger than every file.
[[nodiscard]] inline std::optional<std::uint64_t> read_position(std::string_view digits) {
  if (digits.empty() || !std::ranges::all_of(digits, is_digit)) return std::nullopt;
  return read_number(digits, 10).value_or(std::numeric_limits<std::uint64_t>::max());
}

// "0-99", "100-" or "-100", of a file that is not empty. For any other text the result is empty. If
// the range begins past the end of the file, its last is less than its first.
[[nodiscard]] inline std::optional<byte_range> read_range(std::string_view text,
                                                          std::uint64_t size) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::optional<std::uint64_t> begin = read_position(text.substr(0, dash));
  const std::optional<std::uint64_t> end = read_position(text.substr(dash + 1));
  if (dash == 0) {
    if (!end) return std::nullopt;
    const byte_range suffix{.first = size - std::min(*end, size), .last = size - 1};
    return *end > 0 ? suffix : byte_range{.first = 1, .last = 0};
  }
  const bool is_open = dash + 1 == text.size();
  if (!begin || (!end && !is_open) || (end && *end < *begin)) return std::nullopt;
  if (*begin >= size) return byte_range{.first = 1, .last = 0};
  return byte_range{.first = *begin, .last = std::min(end.value_or(size - 1), size - 1)};
}

// Reads the value of a Range field, for a file of `size` bytes. Stores the ranges in `into`.
[[nodiscard]] inline ranges_read read_byte_ranges(std::string_view value, std::uint64_t size,
                                                  std::span<byte_range> into) {
  const std::size_t equals = value.find('=');
  if (size == 0) return {};
  if (equals == std::string_view::npos || !same_word(value.substr(0, equals), "bytes")) return {};
  std::string_view list = value.substr(equals + 1);
  std::size_t asked = 0;
  ranges_read result;
  while (const std::optional<std::string_view> element = next_of_list(list)) {
    const std::optional<byte_range> range = read_range(*element, size);
    if (!range || ++asked > into.size()) return {};
    if (range->first <= range->last) into[result.count++] = *range;
  }
  if (asked == 0) return {};
  result.outcome = result.count > 0 ? range_outcome::some : range_outcome::unsatisfiable;
  return result;
}

}  // namespace uring::http
