// SPDX-License-Identifier: MIT
// Entity tags, "abc" or W/"abc", and the lists of them in If-Match and If-None-Match.
// See      rfc9110, sections 8.8.3, 13.1.1 and 13.1.2
#pragma once

#include <cstddef>
#include <string_view>

#include "http_grammar.hpp"

namespace uring::http {

enum class tag_comparison {
  weak,    // the same content for a reader: If-None-Match
  strong,  // the same bytes, which no weak tag promises: If-Match and If-Range
};

// Takes an entity tag off the front of `text`; empty if there is none.
[[nodiscard]] constexpr std::string_view take_tag(std::string_view& text) noexcept {
  const std::size_t quote = text.starts_with("W/") ? 2 : 0;
  if (!text.substr(quote).starts_with('"')) return {};
  for (std::size_t at = quote + 1; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte == '"') {
      const std::string_view tag = text.substr(0, at + 1);
      text.remove_prefix(tag.size());
      return tag;
    }
    if (byte <= ' ' || byte == 0x7f) return {};
  }
  return {};
}

[[nodiscard]] constexpr bool is_entity_tag(std::string_view text) noexcept {
  return !take_tag(text).empty() && text.empty();
}

[[nodiscard]] constexpr bool same_tag(std::string_view left, std::string_view right,
                                      tag_comparison how) noexcept {
  const auto opaque = [](std::string_view tag) {
    return tag.starts_with("W/") ? tag.substr(2) : tag;
  };
  const bool is_weak = left.starts_with("W/") || right.starts_with("W/");
  if (is_weak && how == tag_comparison::strong) return false;
  return opaque(left) == opaque(right);
}

// True for "*", too: it stands for every tag. The list ends at anything that is not a tag.
[[nodiscard]] constexpr bool list_has_tag(std::string_view list, std::string_view tag,
                                          tag_comparison how) noexcept {
  list = trimmed(list);
  if (list == "*") return true;
  while (!list.empty()) {
    const std::string_view each = take_tag(list);
    if (!each.empty() && same_tag(each, tag, how)) return true;
    list = trimmed(list);
    if (!list.starts_with(',')) return false;
    list = trimmed(list.substr(1));
  }
  return false;
}

}  // namespace uring::http
