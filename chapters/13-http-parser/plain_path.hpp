// SPDX-License-Identifier: MIT
// Turns the path of a target into a name in a tree of files: decoded once, without "." and "..",
// and without two slashes in a row.
// Lifetime the path is a part of the buffer that the caller gave.
// Errors   a refusal. The request is understood, so the connection may go on after the answer.
// Rule     decode first, then look for "..", because "%2e%2e" is another spelling of it. Never
//          decode a second time.
// See      rfc3986, sections 2.1, 2.4, 3.3 and 6.2.2
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "authority.hpp"
#include "control_bytes.hpp"
#include "refusal.hpp"
#include "todo.hpp"

namespace uring::http {

struct plain_path {
  std::string_view path;  // begins with a slash; ends with one if it names a folder
  refusal refused;
};

[[nodiscard]] constexpr char value_of_hex_digit(char c) noexcept {
  return static_cast<char>(is_digit(c) ? c - '0' : lower(c) - 'a' + 10);
}

// If `text` begins with a percent sign and two hexadecimal digits, such as "%41", returns the byte
// that they stand for, such as A. Otherwise returns nothing.
[[nodiscard]] constexpr std::optional<char> read_percent(std::string_view text) noexcept {
  if (text.size() < 3 || text[0] != '%') return std::nullopt;
  if (!is_hex_digit(text[1]) || !is_hex_digit(text[2])) return std::nullopt;
  const int high = value_of_hex_digit(text[1]);
  return static_cast<char>(high * 16 + value_of_hex_digit(text[2]));
}

// Decodes `segment`, which has no slash, into `into`, which is large enough. Returns how many bytes
// it has written, or nothing if the path must be refused.
inline std::optional<std::size_t> decode(std::string_view segment, std::span<char> into) {
  std::size_t written = 0;
  for (std::size_t at = 0; at < segment.size(); ++at) {
    char byte = segment[at];
    if (byte == '%') {
      // Call read_percent() with the part of the segment that begins here. Return std::nullopt if
      // the result is empty, or is a slash, or is a control byte (is_control()), because a NUL
      // would end the name, and a line feed would end a line of a log. Otherwise store the result
      // in `byte`, and skip the two digits.
      COURSE_TODO("13.4");
    }
    into[written++] = byte;
  }
  return written;
}

// `written` is the path so far, which ends with a slash. `name` is the decoded segment, which comes
// after `written` in the buffer. `has_more` is true if a slash follows the segment in the target.
// Returns how many bytes of the buffer to keep.
//   An empty name or "." adds nothing, so that "//" becomes "/".
//   ".." removes the last folder of `written`. If `written` has no folder, return std::nullopt,
//     because no file of ours is above the root.
//   Any other name stays. If has_more is true, write a slash to *end, the place after the name, and
//     keep the slash, too.
// For example, if `written` is "/a/", "b" gives 5 ("/a/b/") if has_more is true, and otherwise 4.
// The name ".." gives 1 ("/").
inline std::optional<std::size_t> append(std::string_view written, std::string_view name,
                                         bool has_more, char* end) {
  COURSE_TODO("13.4");
}

// `raw` is request_target::path, and begins with a slash. If `into` has fewer bytes than `raw`, the
// path is refused with 414.
inline plain_path make_plain(std::string_view raw, std::span<char> into) {
  if (into.size() < raw.size()) return {{}, {.status = 414, .why = "the path is too long"}};
  std::size_t size = 0;
  into[size++] = '/';
  while (!raw.empty()) {
    raw.remove_prefix(1);  // the slash before the segment
    const std::string_view segment = raw.substr(0, raw.find('/'));
    raw.remove_prefix(segment.size());
    const std::optional<std::size_t> bytes = decode(segment, into.subspan(size));
    if (!bytes) return {{}, bad_request("a path that no file can have")};
    const std::string_view written{into.data(), size};
    const std::string_view name{into.data() + size, *bytes};
    const auto stays = append(written, name, !raw.empty(), into.data() + size + *bytes);
    if (!stays) return {{}, bad_request("a path above the root")};
    size = *stays;
  }
  return {{into.data(), size}, {}};
}

}  // namespace uring::http
