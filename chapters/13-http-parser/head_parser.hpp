// SPDX-License-Identifier: MIT
// Parses a complete head. Before that, head_reader has found the head's end, and has checked for
// control bytes, the end of every line, and the limits, so it makes no difference in which pieces
// the head came.
// Errors   a refusal; the content of `head` is then not valid.
// See      rfc9112, sections 3, 5 and 9.3; rfc9110, sections 7.2, 9.1 and 10.1.1
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "authority.hpp"
#include "body_framing.hpp"
#include "http_grammar.hpp"
#include "refusal.hpp"
#include "request_body.hpp"
#include "request_head.hpp"
#include "request_limits.hpp"
#include "request_target.hpp"
#include "todo.hpp"

namespace uring::http {

struct named_method {
  std::string_view name;
  request_method method;
};
inline constexpr std::array<named_method, 9> known_methods{{
    {"GET", request_method::get},
    {"HEAD", request_method::head},
    {"POST", request_method::post},
    {"PUT", request_method::put},
    {"DELETE", request_method::delete_},
    {"CONNECT", request_method::connect},
    {"OPTIONS", request_method::options},
    {"TRACE", request_method::trace},
    {"PATCH", request_method::patch},
}};

[[nodiscard]] constexpr request_method method_of(std::string_view text) noexcept {
  for (const auto& [name, method] : known_methods) {
    if (name == text) return method;
  }
  return request_method::other;
}

// "HTTP/1.1": in capitals, with one digit each.
[[nodiscard]] constexpr bool is_version(std::string_view text) noexcept {
  return text.size() == 8 && text.starts_with("HTTP/") && is_digit(text[5]) && text[6] == '.' &&
         is_digit(text[7]);
}

// request-line = method SP request-target SP HTTP-version. Sets head.method_text, head.target.text
// and head.minor, which is 0 for HTTP/1.0 and 1 for every later HTTP/1 version. The target is
// everything between the first blank and the last one; read_target() will refuse a blank in it.
// Refuse with 400 if there are fewer than two blanks, if the method is no token (is_token()), or if
// the last word is no version (is_version()). Then refuse with 505 if the first digit of the
// version is not 1.
inline refusal read_request_line(std::string_view line, request_head& head) {
  COURSE_TODO("13.1");
  return {};
}

// The facts that are known from the fields that were read so far.
struct field_facts {
  int hosts = 0;          // how many Host fields there are
  std::string_view host;  // what the last one says
  framing_fields framing;
  bool says_close = false;
  bool says_keep_alive = false;
};

// Checks the Host fields, and then sets head.host. Whatever the target is, refuse with 400 if there
// is more than one Host, if a request of HTTP/1.1 (head.minor is 1) has no Host, or if the value of
// Host is not empty and read_authority() finds no authority in it. Then set head.host to the
// target's authority, or to the value of Host if the target has no authority.
inline refusal decide_host(const field_facts& facts, request_head& head) {
  COURSE_TODO("13.1");
  return {};
}

inline void heed_connection(std::string_view list, field_facts& facts) noexcept {
  while (const std::optional<std::string_view> option = next_of_list(list)) {
    if (same_word(*option, "close")) facts.says_close = true;
    if (same_word(*option, "keep-alive")) facts.says_keep_alive = true;
  }
}

inline void heed_expect(std::string_view list, request_head& head) noexcept {
  while (const std::optional<std::string_view> expected = next_of_list(list)) {
    const bool is_known = same_word(*expected, "100-continue");
    if (!is_known) head.expects = expectation::unknown;
    if (is_known && head.expects == expectation::none) head.expects = expectation::to_continue;
  }
}

inline void heed_field(const field& read, field_facts& facts, request_head& head) noexcept {
  if (same_word(read.name, "Host")) {
    ++facts.hosts;
    facts.host = read.value;
  } else if (same_word(read.name, "Content-Length")) {
    facts.framing.on_content_length(read.value);
  } else if (same_word(read.name, "Transfer-Encoding")) {
    facts.framing.on_transfer_encoding(read.value);
  } else if (same_word(read.name, "Connection")) {
    heed_connection(read.value, facts);
  } else if (same_word(read.name, "Expect")) {
    heed_expect(read.value, head);
  }
}

// Decides what the fields mean together.
inline refusal settle(const field_facts& facts, const request_limits& limits, request_head& head) {
  if (const refusal refused = decide_host(facts, head)) return refused;
  if (facts.framing.has_length || facts.framing.has_coding) {
    const refusal refused = decide_framing(facts.framing, head.minor, limits, head.body);
    if (refused) return refused;
  }
  head.keep_alive = !facts.says_close && (head.minor > 0 || facts.says_keep_alive);
  const bool waits = head.minor > 0 && head.body.has_body();
  if (head.minor == 0 || (head.expects == expectation::to_continue && !waits)) {
    head.expects = expectation::none;
  }
  return {};
}

// Takes a line and its CR LF off the front of `text`, which has at least one line.
inline std::string_view take_line_of_head(std::string_view& text) noexcept {
  const std::string_view line = text.substr(0, text.find('\r'));
  text.remove_prefix(line.size() + 2);
  return line;
}

// `text` is a whole head, as head_reader finds it.
inline refusal parse_head(std::string_view text, const request_limits& limits, request_head& head) {
  head.fields.clear();
  head.target = {};
  head.body = {};
  head.expects = expectation::none;
  std::string_view line = take_line_of_head(text);
  if (line.empty()) line = take_line_of_head(text);
  if (const refusal refused = read_request_line(line, head)) return refused;
  head.method = method_of(head.method_text);
  if (const refusal refused = read_target(head.method, head.target)) return refused;
  field_facts facts;
  for (line = take_line_of_head(text); !line.empty(); line = take_line_of_head(text)) {
    const std::optional<field> read = read_field(line);
    if (!read) return bad_request("no field: a name, a colon, a value");
    heed_field(head.fields.add(*read), facts, head);
  }
  return settle(facts, limits, head);
}

}  // namespace uring::http
