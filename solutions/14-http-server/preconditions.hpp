// SPDX-License-Identifier: MIT
// Whether a client that has a version of the file already needs it again.
// Errors   none: a field that says nothing valid is treated as if it were not there.
// Rule     an entity tag counts more than a date. The fields are checked in the RFC's order.
// See      rfc9110, sections 13.1 and 13.2.2
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "entity_tags.hpp"
#include "file_facts.hpp"
#include "http_date.hpp"
#include "request_head.hpp"

namespace uring::http {

enum class precondition {
  holds,
  not_modified,  // 304: the client has this version
  fails,         // 412: the client wanted another version, or none
};

// What the two fields about dates say: nothing if there is none, or if it is no date.
[[nodiscard]] inline std::optional<std::int64_t> date_in(const request_head& head,
                                                         std::string_view name,
                                                         std::int64_t now_s) noexcept {
  const std::optional<std::string_view> text = head.fields.find(name);
  return text ? read_http_date(*text, now_s) : std::nullopt;
}

// For a GET or HEAD of a file that exists.
[[nodiscard]] inline precondition check_preconditions(const request_head& head,
                                                      const file_validators& has,
                                                      std::int64_t now_s) noexcept {
  if (const auto match = head.fields.find("If-Match")) {
    if (!list_has_tag(*match, has.tag(), tag_comparison::strong)) return precondition::fails;
  } else if (const auto since = date_in(head, "If-Unmodified-Since", now_s)) {
    if (has.modified_s() > *since) return precondition::fails;
  }
  if (const auto none_match = head.fields.find("If-None-Match")) {
    const bool has_it = list_has_tag(*none_match, has.tag(), tag_comparison::weak);
    return has_it ? precondition::not_modified : precondition::holds;
  }
  const auto since = date_in(head, "If-Modified-Since", now_s);
  return since && has.modified_s() <= *since ? precondition::not_modified : precondition::holds;
}

// The client has a part of a file, and asks for another part *if* it is of the same version. A date
// proves that only if the file was not changed in the last second: within it there may be two
// versions.
[[nodiscard]] inline bool part_is_of_this_version(const request_head& head,
                                                  const file_validators& has,
                                                  std::int64_t now_s) noexcept {
  const auto wanted = head.fields.find("If-Range");
  if (!wanted) return true;
  if (is_entity_tag(*wanted)) return same_tag(*wanted, has.tag(), tag_comparison::strong);
  const auto date = read_http_date(*wanted, now_s);
  return date == has.modified_s() && has.modified_s() < now_s;
}

}  // namespace uring::http
