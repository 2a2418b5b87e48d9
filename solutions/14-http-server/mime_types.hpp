// SPDX-License-Identifier: MIT
// The value of Content-Type for a file, by the ending of its name.
// Lifetime the result is static text.
// Rule     a file whose ending is not in the table is sent as bytes of no known type: a browser
//          saves it, and never runs it.
// See      rfc9110, section 8.3; the registry at iana.org/assignments/media-types
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "http_grammar.hpp"

namespace uring::http {

struct mime_type {
  std::string_view ending;
  std::string_view type;
};

inline constexpr std::string_view unknown_type = "application/octet-stream";

// Text is UTF-8. The answer must say so, because otherwise a browser guesses the charset.
inline constexpr std::array mime_types{
    mime_type{"html", "text/html; charset=utf-8"},
    mime_type{"htm", "text/html; charset=utf-8"},
    mime_type{"css", "text/css; charset=utf-8"},
    mime_type{"js", "text/javascript; charset=utf-8"},
    mime_type{"mjs", "text/javascript; charset=utf-8"},
    mime_type{"json", "application/json"},
    mime_type{"map", "application/json"},
    mime_type{"txt", "text/plain; charset=utf-8"},
    mime_type{"md", "text/plain; charset=utf-8"},
    mime_type{"csv", "text/csv; charset=utf-8"},
    mime_type{"xml", "application/xml"},
    mime_type{"svg", "image/svg+xml"},
    mime_type{"png", "image/png"},
    mime_type{"jpg", "image/jpeg"},
    mime_type{"jpeg", "image/jpeg"},
    mime_type{"gif", "image/gif"},
    mime_type{"webp", "image/webp"},
    mime_type{"ico", "image/vnd.microsoft.icon"},
    mime_type{"woff", "font/woff"},
    mime_type{"woff2", "font/woff2"},
    mime_type{"pdf", "application/pdf"},
    mime_type{"zip", "application/zip"},
    mime_type{"gz", "application/gzip"},
    mime_type{"wasm", "application/wasm"},
    mime_type{"mp3", "audio/mpeg"},
    mime_type{"mp4", "video/mp4"},
    mime_type{"webm", "video/webm"},
};

// The type for a path such as /docs/index.html. The case of the ending does not matter.
[[nodiscard]] inline std::string_view type_of(std::string_view path) noexcept {
  const std::string_view name = path.substr(path.find_last_of('/') + 1);
  const std::size_t dot = name.find_last_of('.');
  if (dot == std::string_view::npos) return unknown_type;
  const std::string_view ending = name.substr(dot + 1);
  const auto* const found = std::ranges::find_if(
      mime_types, [&](const mime_type& each) { return same_word(each.ending, ending); });
  return found == mime_types.end() ? unknown_type : found->type;
}

}  // namespace uring::http
