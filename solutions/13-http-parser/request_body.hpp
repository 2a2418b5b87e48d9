// SPDX-License-Identifier: MIT
// Finds the data and the end of a request's body, however it is cut.
// Owns     nothing but counts. The caller keeps an incomplete line.
// Lifetime the data is a part of what take() was given.
// Rule     a request is refused if two readers might disagree about where it ends.
// See      rfc9112, sections 6, 7.1 and 11.2
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "body_framing.hpp"
#include "chunk_line.hpp"
#include "head_reader.hpp"
#include "http_grammar.hpp"
#include "refusal.hpp"
#include "request_limits.hpp"
#include "todo.hpp"

namespace uring::http {

// `said` has a length, a coding or both. Refuses, or stores in `body` how the body ends.
//
// If `said` has a coding, check in this order:
//   400  if there is also a length.
//   400  if `minor` is 0, because HTTP/1.0 has no codings.
//   400  if the last coding is not chunked, or chunked is there more than once.
//   501  if there are other codings before chunked, because we cannot undo them.
// If there is only a length, check in this order:
//   400  if the length is not clear, because only a clear number can be compared.
//   413  if the length is more than limits.body_bytes_max.
// If you refuse nothing, do not return, because the lines after your code store the result.
inline refusal decide_framing(const framing_fields& said, int minor, const request_limits& limits,
                              body_framing& body) {
  // --8<-- [start:task-13-3]
  if (said.has_coding) {
    if (said.has_length) return bad_request("a length and a coding");
    if (minor == 0) return bad_request("Transfer-Encoding in HTTP/1.0");
    if (!said.is_chunked_last || said.chunked > 1) return bad_request("chunked is not last");
    if (said.others > 0) return {.status = 501, .why = "an unknown transfer coding"};
  } else {
    if (!said.is_length_clear) return bad_request("Content-Length is no clear number");
    if (said.length > limits.body_bytes_max) return {.status = 413, .why = "the body is too large"};
  }
  // --8<-- [end:task-13-3]
  body.ends = said.has_coding ? body_end::chunked : body_end::counted;
  body.bytes = said.length;
  return {};
}

class request_body {
 public:
  enum class step { more, data, end, refused };
  struct taken {
    step what = step::more;
    std::string_view data;
    refusal refused;
  };

  request_body() = default;
  explicit request_body(const body_framing& body) noexcept
      : is_chunked_{body.ends == body_end::chunked}, left_{body.bytes} {
    if (is_chunked_) place_ = place::size_line;
    if (!is_chunked_ && left_ > 0) place_ = place::data;
  }

  // Takes the next data off the front of `received`, and the lines before it. An incomplete line is
  // left there, and the next call gets it again, with more bytes after it.
  taken take(std::string_view& received, const request_limits& limits) {
    while (place_ != place::end) {
      if (place_ == place::data) return take_data(received);
      const line_state state = line_.look(received, line_bytes_max(limits));
      if (state == line_state::incomplete) return {};
      if (state != line_state::whole) return refuse(refusal_of(state));
      const std::string_view line = received.substr(0, line_.bytes());
      received.remove_prefix(line_.bytes_with_end());
      line_.next();
      if (const refusal refused = on_line(line, limits)) return refuse(refused);
    }
    return {.what = step::end, .data = {}, .refused = {}};
  }

 private:
  enum class place { size_line, data, after_chunk, trailer, end };

  static taken refuse(const refusal& why) noexcept {
    return {.what = step::refused, .data = {}, .refused = why};
  }

  taken take_data(std::string_view& received) noexcept {
    if (received.empty()) return {};
    const std::size_t bytes = std::min<std::uint64_t>(received.size(), left_);
    const std::string_view data = received.substr(0, bytes);
    received.remove_prefix(bytes);
    left_ -= bytes;
    if (left_ == 0) place_ = is_chunked_ ? place::after_chunk : place::end;
    return {.what = step::data, .data = data, .refused = {}};
  }

  // After a chunk's data an empty line follows.
  [[nodiscard]] std::size_t line_bytes_max(const request_limits& limits) const noexcept {
    if (place_ == place::after_chunk) return 0;
    if (place_ == place::size_line) return limits.chunk_line_bytes_max;
    return limits.trailer_bytes_max - trailer_bytes_;
  }

  [[nodiscard]] refusal refusal_of(line_state state) const noexcept {
    if (state == line_state::bad_byte) return bad_request("a control byte in the framing");
    if (place_ == place::after_chunk) return bad_request("a chunk is longer than it said");
    if (place_ == place::size_line) return bad_request("a chunk's line is too long");
    return {.status = 431, .why = "the trailer is too large"};
  }

  refusal on_line(std::string_view line, const request_limits& limits) {
    if (place_ == place::size_line) return on_size_line(line, limits);
    if (place_ == place::trailer) return on_trailer_line(line);
    place_ = place::size_line;
    return {};
  }

  refusal on_size_line(std::string_view line, const request_limits& limits) {
    const std::optional<chunk_line> chunk = read_chunk_line(line);
    if (!chunk) return bad_request("a chunk's line is no size with extensions");
    extension_bytes_ += chunk->extension.size();
    if (extension_bytes_ > limits.chunk_extension_bytes_max) return bad_request("extensions");
    return begin_chunk(chunk->bytes, limits);
  }

  // A chunk of `bytes` bytes begins. body_bytes_ is the sum of the sizes of all chunks before it.
  // Refuse with 413 if `bytes` would make the sum more than limits.body_bytes_max. An attacker may
  // choose `bytes` so large that the addition overflows. If you do not refuse, add `bytes` to
  // body_bytes_, set left_ to `bytes`, and set place_ to what comes next: place::data, or
  // place::trailer if `bytes` is 0.
  refusal begin_chunk(std::uint64_t bytes, const request_limits& limits) {
    // --8<-- [start:task-13-3b]
    const std::uint64_t room = limits.body_bytes_max - body_bytes_;
    if (bytes > room) return {.status = 413, .why = "the body is too large"};
    body_bytes_ += bytes;
    left_ = bytes;
    place_ = bytes > 0 ? place::data : place::trailer;
    // --8<-- [end:task-13-3b]
    return {};
  }

  // A field of the trailer is checked and then ignored, because no field that we know is allowed
  // there (rfc9110, 6.5.1), least of all one about framing.
  refusal on_trailer_line(std::string_view line) noexcept {
    trailer_bytes_ += line.size();
    if (line.empty()) place_ = place::end;
    if (!line.empty() && !read_field(line)) return bad_request("a line of the trailer is no field");
    return {};
  }

  line_reader line_;
  place place_ = place::end;
  bool is_chunked_ = false;
  std::uint64_t left_ = 0;  // bytes left of the body if counted, of the chunk if chunked
  std::uint64_t body_bytes_ = 0;
  std::size_t extension_bytes_ = 0;
  std::size_t trailer_bytes_ = 0;
};

}  // namespace uring::http
