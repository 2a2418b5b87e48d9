// SPDX-License-Identifier: MIT
// The head of every answer, and those answers that are a short text: an error, a redirect. The
// answers about files are in file_head.hpp.
// Errors   response_writer::ok() is false if the room was too small: answer_head_bytes_max is
//          enough for all of these but a redirect.
// Rule     the fields have one fixed order, so that 14-server and its peers send the same bytes.
// See      rfc9110, sections 8 and 15; rfc9112, section 9.3
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

#include "request_head.hpp"
#include "response_writer.hpp"

namespace uring::http {

inline constexpr std::size_t answer_head_bytes_max = 1024;
inline constexpr std::string_view plain_text = "text/plain; charset=utf-8";

// What happens to the connection after this answer, and whether the answer has to say so.
enum class afterwards {
  goes_on,
  goes_on_as_asked,  // HTTP/1.0: only if both sides say so
  ends,
};

[[nodiscard]] inline afterwards after_answer(const request_head& head) noexcept {
  if (!head.keep_alive) return afterwards::ends;
  return head.minor == 0 ? afterwards::goes_on_as_asked : afterwards::goes_on;
}

struct answer_frame {
  std::string_view date;  // see date_clock
  afterwards then = afterwards::goes_on;
  bool has_body = true;  // false for HEAD: the same head, and nothing after it
};

inline void begin_answer(response_writer& to, int status, const answer_frame& frame) {
  to.status(status).field("Date", frame.date);
  if (frame.then == afterwards::ends) to.field("Connection", "close");
  if (frame.then == afterwards::goes_on_as_asked) to.field("Connection", "keep-alive");
}

// How many bytes of a body are in `answer`, which may end before its head does.
[[nodiscard]] inline std::size_t body_bytes_in(std::string_view answer) noexcept {
  constexpr std::string_view end_of_head = "\r\n\r\n";
  const std::size_t end = answer.find(end_of_head);
  return end == std::string_view::npos ? 0 : answer.size() - end - end_of_head.size();
}

// ---- a short text: what went wrong, or where to go ----

// The body is "404 Not Found" and an end of line.
struct short_body {
  explicit short_body(int status) noexcept {
    const std::string_view reason = reason_of(status);
    char* at = std::to_chars(text.data(), text.data() + 3, status).ptr;
    *at++ = ' ';
    at += reason.copy(at, text.size() - 5);
    *at++ = '\n';
    bytes = static_cast<std::size_t>(at - text.data());
  }
  [[nodiscard]] std::string_view view() const noexcept { return {text.data(), bytes}; }

  std::array<char, 64> text{};
  std::size_t bytes = 0;
};

struct extra_field {
  std::string_view name = {};
  std::string_view value = {};
};

inline void write_text_answer(response_writer& to, int status, const answer_frame& frame,
                              std::string_view type, std::string_view body,
                              const extra_field& extra = {}) {
  begin_answer(to, status, frame);
  to.field("Content-Type", type).field("Content-Length", body.size());
  if (!extra.name.empty()) to.field(extra.name, extra.value);
  to.end_head();
  if (frame.has_body) to.body(body);
}

inline void write_short_answer(response_writer& to, int status, const answer_frame& frame,
                               const extra_field& extra = {}) {
  const short_body body{status};
  write_text_answer(to, status, frame, plain_text, body.view(), extra);
}

// ---- a folder without its slash ----

// Escapes all bytes of the path that might have a special meaning, because an answer must not
// repeat such bytes of a client unchanged.
[[nodiscard]] inline std::string percent_encoded(std::string_view path) {
  constexpr std::string_view stands_for_itself =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string text;
  for (const char each : path) {
    if (stands_for_itself.find(each) != std::string_view::npos) {
      text += each;
      continue;
    }
    const auto byte = static_cast<unsigned char>(each);
    text += '%';
    text += digits[byte / 16];
    text += digits[byte % 16];
  }
  return text;
}

// From /docs to /docs/: without the slash, every relative link of its page would lead elsewhere.
inline void write_redirect(response_writer& to, const answer_frame& frame, std::string_view path,
                           std::string_view query) {
  std::string location = percent_encoded(path) + "/";
  if (!query.empty()) location.append("?").append(query);
  write_short_answer(to, 301, frame, {"Location", location});
}

}  // namespace uring::http
