// SPDX-License-Identifier: MIT
#include "bytes.hpp"

#include <algorithm>
#include <cctype>

namespace course_test {
namespace {

constexpr std::size_t record_bytes = 16;
constexpr std::size_t context_bytes = 24;  // shown on each side of a difference

void write_decimal(char* end, std::size_t number, std::size_t digits) {
  for (; digits > 0; --digits, number /= 10) *--end = static_cast<char>('0' + number % 10);
}

// Printable, quoted, and short: what surrounds `at` in `text`.
std::string surroundings(std::string_view text, std::size_t at) {
  const std::size_t from = at > context_bytes ? at - context_bytes : 0;
  std::string shown = from > 0 ? "\"…" : "\"";
  for (const char each : text.substr(from, at - from + context_bytes)) {
    shown += std::isprint(static_cast<unsigned char>(each)) != 0 ? each : '?';
  }
  return shown + (at + context_bytes < text.size() ? "…\"" : "\"");
}

}  // namespace

std::string pattern(unsigned client, std::size_t bytes, std::size_t offset) {
  const std::size_t skipped = offset % record_bytes;
  std::string made;
  made.reserve(bytes + 2 * record_bytes);
  for (std::size_t at = offset - skipped; made.size() < skipped + bytes; at += record_bytes) {
    char record[] = "c-----@--------|";
    write_decimal(record + 6, client, 5);
    write_decimal(record + 15, at, 8);
    made.append(record, record_bytes);
  }
  return made.substr(skipped, bytes);
}

std::vector<std::string> own_messages(std::size_t clients, std::size_t bytes) {
  std::vector<std::string> messages;
  messages.reserve(clients);
  for (unsigned i = 0; i < clients; ++i) messages.push_back(pattern(i, bytes));
  return messages;
}

std::string compare_bytes(std::string_view actual, std::string_view expected) {
  if (actual == expected) return std::string{identical};
  const std::string lengths = "got " + std::to_string(actual.size()) + " bytes of " +
                              std::to_string(expected.size()) + " expected";
  const auto [got, wanted] =
      std::mismatch(actual.begin(), actual.end(), expected.begin(), expected.end());
  const auto at = static_cast<std::size_t>(got - actual.begin());
  if (at == actual.size())
    return lengths + ": the rest is missing, and the bytes that came are right";
  if (at == expected.size()) {
    return lengths + ": the first bytes are right, but more came: " + surroundings(actual, at);
  }
  return lengths + ": the first difference is at offset " + std::to_string(at) + ": got " +
         surroundings(actual, at) + " where " + surroundings(expected, at) + " was expected";
}

std::string compare_all(std::span<const std::string> replies,
                        std::span<const std::string> messages) {
  for (std::size_t i = 0; i < std::max(replies.size(), messages.size()); ++i) {
    if (i >= replies.size()) return "reply " + std::to_string(i) + " is missing";
    if (i >= messages.size()) return "reply " + std::to_string(i) + " answers no message";
    const std::string verdict = compare_bytes(replies[i], messages[i]);
    if (verdict != identical) return "reply " + std::to_string(i) + ": " + verdict;
  }
  return std::string{identical};
}

}  // namespace course_test
