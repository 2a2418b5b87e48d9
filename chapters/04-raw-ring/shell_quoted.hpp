// SPDX-License-Identifier: MIT
// A file's name in a message, as GNU's programs print it: in quotes where a shell would need them.
// Errors   none; bytes beyond ASCII go through as they are.
// See      cat(1)
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace cat {

// A name may contain commands to a terminal, so control characters are written as escapes.
[[nodiscard]] inline bool is_control(char c) {
  return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
}

[[nodiscard]] inline bool needs_quotes(const std::string& name) {
  constexpr std::string_view special = " !\"$&'()*:;<=>?[\\^`|";
  return name.empty() || name.front() == '#' || name.front() == '~' || name == "{" || name == "}" ||
         name.find_first_of(special) != std::string::npos || std::ranges::any_of(name, is_control);
}

// GNU's programs use double quotes for a name that has an apostrophe and no character that is
// special between double quotes. These programs treat # and ~ as special after the first character,
// and { and } as special anywhere.
[[nodiscard]] inline bool suits_double_quotes(const std::string& name) {
  constexpr std::string_view special = "!\"$&()*;<=>?[\\^`{|}";
  return name.find('\'') != std::string::npos && name.find_first_of(special) == std::string::npos &&
         name.find_first_of("#~", 1) == std::string::npos && std::ranges::none_of(name, is_control);
}

// The character as a shell reads it between $' and '.
[[nodiscard]] inline std::string escaped(char c) {
  constexpr std::string_view named = "\a\b\t\n\v\f\r";  // 7 to 13 in ASCII
  if (named.find(c) != std::string_view::npos) return {'\\', "abtnvfr"[c - '\a']};
  const auto digit = [c](int shift) { return static_cast<char>('0' + (c >> shift & 7)); };
  return {'\\', digit(6), digit(3), digit(0)};
}

[[nodiscard]] inline std::string shell_quoted(const std::string& name) {
  if (!needs_quotes(name)) return name;
  if (suits_double_quotes(name)) return '"' + name + '"';
  std::string text = "'";
  bool escaping = false;  // within $'...'
  for (const char c : name) {
    if (is_control(c) != escaping && c != '\'') text += escaping ? "''" : "'$'";
    escaping = is_control(c);
    text += escaping ? escaped(c) : c == '\'' ? "'\\''" : std::string{c};
  }
  return text + "'";
}

}  // namespace cat
