// SPDX-License-Identifier: MIT
// Checks what must hold for any bytes, even for those that no client would ever send.
// Errors   a check that fails gives a sentence, and in the lines below it, each behind two blanks,
//          the bytes and results that show the failure. An empty string: every check passed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "body_decoder.hpp"
#include "byte_ranges.hpp"
#include "entity_tags.hpp"
#include "http_date.hpp"
#include "parse_transcript.hpp"
#include "plain_path.hpp"
#include "request_body.hpp"
#include "request_limits.hpp"
#include "response_head.hpp"
#include "response_writer.hpp"

namespace course_test {

using uring::http::request_limits;

// Small ones, so that few bytes reach them.
inline constexpr request_limits tight_limits{.request_line_bytes_max = 40,
                                             .field_line_bytes_max = 32,
                                             .fields_max = 4,
                                             .head_bytes_max = 120,
                                             .body_bytes_max = 16,
                                             .chunk_line_bytes_max = 12,
                                             .chunk_extension_bytes_max = 10,
                                             .trailer_bytes_max = 16};

// The sizes of the pieces are the bytes behind the last byte 0xff, so the fuzzer chooses the cuts,
// too. Without such a byte they are made from the input, so that another input is cut elsewhere.
class chosen_pieces {
 public:
  explicit chosen_pieces(std::string_view input)
      : bytes_{input.substr(0, input.rfind('\xff'))},
        sizes_{input.substr(std::min(bytes_.size() + 1, input.size()))},
        random_{static_cast<unsigned>(std::hash<std::string_view>{}(bytes_))} {}

  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }

  [[nodiscard]] std::size_t next_size() {
    if (sizes_.empty()) return 1 + random_() % 16;
    const char chosen = sizes_[next_++ % sizes_.size()];
    return std::size_t{1} + static_cast<unsigned char>(chosen);
  }

 private:
  std::string_view bytes_;
  std::string_view sizes_;
  std::size_t next_ = 0;
  std::minstd_rand random_;
};

// Each line of `text` behind two blanks more.
inline std::string indented(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    lines += "\n    " + std::string{line};
  }
  return lines;
}

inline std::string in_words(const request_limits& limits) {
  return "a request line of " + std::to_string(limits.request_line_bytes_max) +
         " bytes, a field of " + std::to_string(limits.field_line_bytes_max) + ", " +
         std::to_string(limits.fields_max) + " fields, a head of " +
         std::to_string(limits.head_bytes_max) + ", a body of " +
         std::to_string(limits.body_bytes_max) + ", a chunk's line of " +
         std::to_string(limits.chunk_line_bytes_max) + ", its extensions of " +
         std::to_string(limits.chunk_extension_bytes_max) + ", a trailer of " +
         std::to_string(limits.trailer_bytes_max);
}

// "cut into 3, 3, 7 bytes"
inline std::string in_words(chosen_pieces pieces) {
  std::string words = "cut into";
  for (std::string_view rest = pieces.bytes(); !rest.empty();) {
    const std::string_view piece = rest.substr(0, pieces.next_size());
    words += (words.back() == 'o' ? " " : ", ") + std::to_string(piece.size());
    rest.remove_prefix(piece.size());
  }
  return words + " bytes";
}

// The same bytes in two ways, and what the parser said of them.
inline std::string differ(const std::string& how, std::string_view bytes, std::string_view whole,
                          std::string_view in_pieces, const request_limits& limits) {
  return "the answer depends on the cut\n  sent: “" + uring::http::printable(bytes) +
         "”\n  limits: " + in_words(limits) + "\n  in one piece:" + indented(whole) + "\n  " + how +
         ":" + indented(in_pieces);
}

inline std::string cut_as_chosen(chosen_pieces pieces, const request_limits& limits) {
  uring::http::parse_transcript transcript{limits};
  for (std::string_view rest = pieces.bytes(); !rest.empty();) {
    const std::string_view piece = rest.substr(0, pieces.next_size());
    transcript.feed(piece);
    rest.remove_prefix(piece.size());
  }
  return transcript.finish();
}

inline std::string splits_agree(std::string_view input, const request_limits& limits) {
  const chosen_pieces pieces{input};
  const std::string_view bytes = pieces.bytes();
  const std::string whole = uring::http::transcript_of(bytes, bytes.size() + 1, limits);
  const std::string bytewise = uring::http::transcript_of(bytes, 1, limits);
  if (bytewise != whole) return differ("byte by byte", bytes, whole, bytewise, limits);
  const std::string chosen = cut_as_chosen(pieces, limits);
  if (chosen != whole) return differ(in_words(pieces), bytes, whole, chosen, limits);
  return "";
}

inline std::string path_is_plain(std::string_view input) {
  const std::string raw = "/" + std::string{input};
  std::vector<char> room(raw.size());
  const uring::http::plain_path made = uring::http::make_plain(raw, room);
  if (made.refused) return "";
  const std::string path{made.path};
  if (!path.starts_with('/') || path.find("//") != std::string::npos) return "slashes in a path";
  for (const std::string_view dots : {"/./", "/../"}) {
    if ((path + "/").find(dots) != std::string::npos) return "dots in a path";
  }
  if (input.find('%') != std::string_view::npos) return "";
  const bool is_same = uring::http::make_plain(path, room).path == path;
  return is_same ? "" : "a plain path is not plain";
}

// Chapter 07's client reads chunks, too, and is the more lenient one: what the server takes for a
// body, the client has to take for the same body.
inline std::string client_agrees(std::string_view input) {
  using uring::http::body_end;
  uring::http::request_body server{{.ends = body_end::chunked, .bytes = 0}};
  std::string_view rest = input;
  std::string body;
  while (true) {
    const auto taken = server.take(rest, {});
    body += taken.data;
    if (taken.what == uring::http::request_body::step::end) break;
    if (taken.what != uring::http::request_body::step::data) return "";
  }
  uring::http::response_head head;
  head.ends = body_end::chunked;
  uring::http::body_decoder client{head};
  std::string by_client;
  std::string_view left = input;
  try {
    while (!client.is_complete() && !left.empty()) by_client += client.take(left);
  } catch (const std::exception& error) {
    return std::string{"the client refuses what the server takes: "} + error.what();
  }
  return client.is_complete() && by_client == body && left == rest ? "" : "the client differs";
}

inline std::string small_grammars_hold(std::string_view input) {
  const auto when = uring::http::read_http_date(input, 0);
  if (when) {
    const uring::http::date_text text = uring::http::to_http_date(*when);
    if (uring::http::read_http_date(uring::http::view_of(text), 0) != when) return "a date differs";
  }
  std::array<uring::http::byte_range, 3> ranges;
  const auto read = uring::http::read_byte_ranges(input, 100, ranges);
  for (std::size_t i = 0; i < read.count; ++i) {
    if (ranges[i].first > ranges[i].last || ranges[i].last > 99) return "a range leaves the file";
  }
  if (uring::http::list_has_tag(input, "\"a\"", uring::http::tag_comparison::strong) &&
      !uring::http::list_has_tag(input, "\"a\"", uring::http::tag_comparison::weak)) {
    return "a strong comparison finds more than a weak one";
  }
  std::array<char, 64> room;
  uring::http::response_writer writer{room};
  writer.status(200).field("A", input).end_head();
  const std::string_view text = writer.text();
  if (writer.ok() && text.find("\r\n\r\n") != text.size() - 4) return "a value ended the head";
  return "";
}

inline std::string check_any_bytes(std::string_view input) {
  for (const request_limits& limits : {request_limits{}, tight_limits}) {
    std::string problem = splits_agree(input, limits);
    if (!problem.empty()) return problem;
  }
  for (const std::string& problem :
       {path_is_plain(input), client_agrees(input), small_grammars_hold(input)}) {
    if (!problem.empty()) return problem + "\n  input: “" + uring::http::printable(input) + "”";
  }
  return "";
}

}  // namespace course_test
