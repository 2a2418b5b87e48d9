// SPDX-License-Identifier: MIT
// Payloads whose bytes name their client, and a comparison that says where two texts differ.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace course_test {

// "c00017@00004096|c00017@00004112|…": 16 bytes a record, which name the client and the position.
// So a foreign, lost, doubled or reordered byte shows, and shows where it came from.
[[nodiscard]] std::string pattern(unsigned client, std::size_t bytes, std::size_t offset = 0);

// messages[i] is pattern(i, bytes): the same bytes never go through two connections.
[[nodiscard]] std::vector<std::string> own_messages(std::size_t clients, std::size_t bytes);

[[nodiscard]] inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text});
}
[[nodiscard]] inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline constexpr std::string_view identical = "identical";

// CHECK(compare_bytes(reply, expected) == identical): a failure prints the first difference with
// its surroundings and both lengths, never the megabytes.
[[nodiscard]] std::string compare_bytes(std::string_view actual, std::string_view expected);

// The first i whose replies[i] differs from messages[i], and how; or `identical`.
[[nodiscard]] std::string compare_all(std::span<const std::string> replies,
                                      std::span<const std::string> messages);

}  // namespace course_test
