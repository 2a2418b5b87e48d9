// SPDX-License-Identifier: MIT
// The part of a response before the body: the status, and how the body ends. This is just enough
// for a client that makes one request. Chapter 13's parser uses http_grammar.hpp, too, but a
// client may be lenient where a server must not be, so lines may end with LF alone.
// Lifetime the reason is a copy.
// Errors   bad_response, whose text says what came.
// Rule     a chunked body is chunked whatever Content-Length says. Two different lengths, or an
//          unknown coding of the body, make the response bad: the client does not guess.
// See      rfc9112, sections 4, 5 and 6
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "http_grammar.hpp"

namespace uring::http {

class bad_response : public std::runtime_error {
 public:
  explicit bad_response(const std::string& what)
      : std::runtime_error{"the server's answer: " + printable(what)} {}

 private:
  // A part of `what` came from the server, and a terminal would take some bytes as commands.
  static std::string printable(std::string what) {
    std::ranges::replace_if(what, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
    return what;
  }
};

struct response_head {
  int status = 0;
  std::string reason;
  body_end ends = body_end::at_eof;
  std::uint64_t body_bytes = 0;  // if counted
};

// Returns how many bytes the head has, with its empty line. If that has not come, returns nothing.
[[nodiscard]] inline std::optional<std::size_t> head_bytes(std::string_view received) {
  for (std::size_t end = received.find('\n'); end != std::string_view::npos;
       end = received.find('\n', end + 1)) {
    const std::string_view after = received.substr(end + 1);
    if (after.starts_with("\n")) return end + 2;
    if (after.starts_with("\r\n")) return end + 3;
  }
  return std::nullopt;
}

// All of `text` must be digits, and at least one.
[[nodiscard]] inline std::uint64_t to_bytes(std::string_view text) {
  const std::optional<std::uint64_t> bytes = read_number(text, 10);
  if (bytes) return *bytes;
  throw bad_response{"“" + std::string{text.substr(0, 40)} + "” is no count of bytes"};
}

// Takes the next line off the front of `text`, without its end.
[[nodiscard]] inline std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// "HTTP/1.1 200 OK"; the reason may be missing.
[[nodiscard]] inline response_head parse_status_line(std::string_view line) {
  const auto digit = [&line](std::size_t at) { return is_digit(line[at]); };
  const bool is_one = line.starts_with("HTTP/1.") && line.size() >= 12 && digit(7) &&
                      line[8] == ' ' && digit(9) && digit(10) && digit(11) &&
                      (line.size() == 12 || line[12] == ' ');
  if (!is_one) throw bad_response{"“" + std::string{line.substr(0, 40)} + "” is no status line"};
  response_head head;
  head.status = static_cast<int>(to_bytes(line.substr(9, 3)));
  head.reason = line.size() > 13 ? line.substr(13) : "";
  return head;
}

// Evaluates the two fields that tell how the body ends.
inline void heed_field(response_head& head, std::string_view line) {
  const std::optional<field> read = read_field(line);
  if (!read) throw bad_response{"“" + std::string{line.substr(0, 40)} + "” is no header field"};
  const auto [name, value] = *read;
  if (same_word(name, "Transfer-Encoding")) {
    if (!same_word(value, "chunked")) {
      throw bad_response{"its body has the coding “" + std::string{value} + "”"};
    }
    head.ends = body_end::chunked;
  } else if (same_word(name, "Content-Length") && head.ends != body_end::chunked) {
    const std::uint64_t bytes = to_bytes(value);
    if (head.ends == body_end::counted && head.body_bytes != bytes) {
      throw bad_response{"it has two lengths"};
    }
    head.ends = body_end::counted;
    head.body_bytes = bytes;
  }
}

// `text` is a whole head, as head_bytes() counts it.
[[nodiscard]] inline response_head parse_response_head(std::string_view text) {
  response_head head = parse_status_line(take_line(text));
  for (std::string_view line = take_line(text); !line.empty(); line = take_line(text)) {
    heed_field(head, line);
  }
  const bool never_has_a_body = head.status < 200 || head.status == 204 || head.status == 304;
  if (never_has_a_body) head.ends = body_end::none;
  return head;
}

}  // namespace uring::http
