// SPDX-License-Identifier: MIT
// The head of an answer about a file. After a 200 or 206, the selected bytes of the file follow.
// Errors   response_writer::ok() is false if the room was smaller than answer_head_bytes_max.
// Rule     304 has the validators of the file, and no other field of the 200. 412 and 416 are short
//          texts about the request, so they have no field of the file.
// See      rfc9110, sections 8.8, 14.4, 15.3.7, 15.4.5 and 15.5.17
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "answer_head.hpp"
#include "file_facts.hpp"
#include "file_selection.hpp"
#include "response_writer.hpp"

namespace uring::http {

inline void add_validators(response_writer& to, const file_validators& has) {
  to.field("ETag", has.tag()).field("Last-Modified", has.modified_text());
}

// The fields that are the same in every 200 for one version of a file, so that a cache keeps them.
inline void add_fields_of_file(response_writer& to, std::string_view type, std::uint64_t bytes,
                               const file_validators& has) {
  to.field("Content-Type", type).field("Content-Length", bytes);
  add_validators(to, has);
  to.field("Accept-Ranges", "bytes");
}

// "bytes 0-99/1234", or "bytes */1234" if nothing of it was selected.
[[nodiscard]] inline std::string content_range(const file_selection& part, std::uint64_t size) {
  std::string text = "bytes ";
  if (part.bytes == 0) {
    text += "*";
  } else {
    text += std::to_string(part.first) + "-" + std::to_string(part.first + part.bytes - 1);
  }
  return text += "/" + std::to_string(size);
}

inline void write_file_head(response_writer& to, const file_selection& part,
                            const answer_frame& frame, std::string_view type, std::uint64_t size,
                            const file_validators& has) {
  if (part.status == 416) {
    const std::string none = content_range(part, size);
    return write_short_answer(to, 416, frame, {"Content-Range", none});
  }
  if (part.status == 412) return write_short_answer(to, 412, frame);
  begin_answer(to, part.status, frame);
  if (part.status == 304) {
    add_validators(to, has);
  } else {
    add_fields_of_file(to, type, part.bytes, has);
    if (part.status == 206) to.field("Content-Range", content_range(part, size));
  }
  to.end_head();
}

}  // namespace uring::http
