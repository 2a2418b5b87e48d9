// SPDX-License-Identifier: MIT
// Selects the bytes of a file for the answer to a GET or HEAD, and the answer's status.
// Errors   none: 412 and 416 are answers.
// Rule     one range is served. A request for several ranges gets the whole file, as the RFC
//          allows, because such requests are an old way to keep a server busy.
// See      rfc9110, sections 13.2.2, 14.2 and 15.5.17
#pragma once

#include <array>
#include <cstdint>

#include "byte_ranges.hpp"
#include "file_facts.hpp"
#include "preconditions.hpp"
#include "request_head.hpp"

namespace uring::http {

struct file_selection {
  int status = 200;  // 200, 206, 304, 412, 416
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;  // of the body that a GET gets; of 200 and 206
};

[[nodiscard]] inline file_selection select_bytes(const request_head& head,
                                                 const file_validators& has, std::uint64_t size,
                                                 std::int64_t now_s) noexcept {
  switch (check_preconditions(head, has, now_s)) {
    case precondition::not_modified:
      return {.status = 304};
    case precondition::fails:
      return {.status = 412};
    case precondition::holds:
      break;
  }
  const file_selection whole{.status = 200, .first = 0, .bytes = size};
  const auto wanted = head.fields.find("Range");
  if (!wanted || head.method != request_method::get) return whole;
  if (!part_is_of_this_version(head, has, now_s)) return whole;
  std::array<byte_range, 2> found{};
  const ranges_read read = read_byte_ranges(*wanted, size, found);
  if (read.outcome == range_outcome::unsatisfiable) return {.status = 416};
  if (read.outcome == range_outcome::ignored || read.count != 1) return whole;
  return {.status = 206, .first = found[0].first, .bytes = found[0].last - found[0].first + 1};
}

}  // namespace uring::http
