// SPDX-License-Identifier: MIT
// A file's name in a message, as GNU's programs print it: in quotes where a shell would need them.
// Owns     nothing.
// Lifetime none.
// Threads  any.
// Errors   none; bytes beyond ASCII go through as they are.
// See      cat(1)
#pragma once

#include <string>
#include <string_view>

namespace cat {

[[nodiscard]] inline bool needs_quotes(const std::string& name) {
  constexpr std::string_view special = " !\"$&'()*:;<=>?[\\^`|\t\n";
  return name.empty() || name.front() == '#' || name.front() == '~' || name == "{" || name == "}" ||
         name.find_first_of(special) != std::string::npos;
}

[[nodiscard]] inline std::string shell_quoted(const std::string& name) {
  if (!needs_quotes(name)) return name;
  const bool apostrophe = name.find('\'') != std::string::npos;
  if (apostrophe && name.find_first_of("\"$\\`!\t\n") == std::string::npos) return '"' + name + '"';
  std::string text = "'";
  for (const char c : name) {
    switch (c) {
      case '\'':
        text += "'\\''";
        break;
      case '\t':
        text += "'$'\\t''";
        break;
      case '\n':
        text += "'$'\\n''";
        break;
      default:
        text += c;
    }
  }
  return text + "'";
}

}  // namespace cat
