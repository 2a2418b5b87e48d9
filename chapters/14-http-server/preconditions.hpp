// SPDX-License-Identifier: MIT
// Decides whether a client that already has a version of the file needs it again.
// Errors   none: an invalid date is ignored. A list of tags ends at its first invalid part, so an
//          If-Match that is invalid from its start gets 412.
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
  fails,         // 412: the client requires another version
};

// Whether If-Match or If-None-Match has the tag. The result is empty if the head has no such field.
// All lines of such a field are one list, so the tag may be on any of them (rfc9110, 5.3).
[[nodiscard]] inline std::optional<bool> has_tag_in(const request_head& head, std::string_view name,
                                                    std::string_view tag,
                                                    tag_comparison how) noexcept {
  std::optional<bool> has_it;
  for (const field& each : head.fields.named(name)) {
    has_it = has_it.value_or(false) || list_has_tag(each.value, tag, how);
  }
  return has_it;
}

// The date in the field `name`. The result is empty if the field is missing, is no date, or is on
// several lines, because a list of dates is no date (rfc9110, 13.1.3).
[[nodiscard]] inline std::optional<std::int64_t> date_in(const request_head& head,
                                                         std::string_view name,
                                                         std::int64_t now_s) noexcept {
  std::optional<std::string_view> text;
  for (const field& each : head.fields.named(name)) {
    if (text) return std::nullopt;
    text = each.value;
  }
  return text ? read_http_date(*text, now_s) : std::nullopt;
}

// For a GET or HEAD of a file that exists.
[[nodiscard]] inline precondition check_preconditions(const request_head& head,
                                                      const file_validators& has,
                                                      std::int64_t now_s) noexcept {
  if (const auto match = has_tag_in(head, "If-Match", has.tag(), tag_comparison::strong)) {
    if (!*match) return precondition::fails;
  } else if (const auto since = date_in(head, "If-Unmodified-Since", now_s)) {
    if (has.modified_s() > *since) return precondition::fails;
  }
  if (const auto match = has_tag_in(head, "If-None-Match", has.tag(), tag_comparison::weak)) {
    return *match ? precondition::not_modified : precondition::holds;
  }
  const auto since = date_in(head, "If-Modified-Since", now_s);
  return since && has.modified_s() <= *since ? precondition::not_modified : precondition::holds;
}

// The client has a part of a file, and asks for another part *if* it is of the same version. A date
// proves that only if the file was not changed in the last second, because a file may have two
// versions within the same second.
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
