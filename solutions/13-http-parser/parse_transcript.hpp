// SPDX-License-Identifier: MIT
// Writes the parser's results as text. The text must be the same however the bytes are cut.
// Owns     the bytes that were not taken. Each piece gets new memory of exactly the right size, so
//          that AddressSanitizer finds a parser that reads past the bytes.
// Lifetime the limits must outlive it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "request_head.hpp"
#include "request_limits.hpp"
#include "request_parser.hpp"

namespace uring::http {

// Writes bytes that a terminal might obey, and bytes that are not ASCII, as \xNN.
inline std::string printable(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    if (c >= ' ' && c < 0x7f) {
      text += c;
      continue;
    }
    std::array<char, 5> hex{};
    std::snprintf(hex.data(), hex.size(), "\\x%02x", static_cast<unsigned char>(c));
    text += hex.data();
  }
  return text;
}

inline std::string describe(const request_target& target) {
  constexpr std::array<std::string_view, 4> forms{"origin", "absolute", "authority", "asterisk"};
  std::string text = "  target: " + std::string{forms[static_cast<std::size_t>(target.form)]};
  if (!target.path.empty()) text += ", path " + std::string{target.path};
  if (target.has_query) text += ", query “" + std::string{target.query} + "”";
  return text + "\n";
}

inline std::string describe(const request_head& head) {
  std::string text = printable(head.method_text) + " " + printable(head.target.text) + " HTTP/1." +
                     std::to_string(head.minor) + "\n" + describe(head.target);
  text += "  host: " + printable(head.host) + "\n  body: ";
  if (head.body.ends == body_end::none) text += "none";
  if (head.body.ends == body_end::counted) text += std::to_string(head.body.bytes) + " bytes";
  if (head.body.ends == body_end::chunked) text += "chunked";
  text += head.keep_alive ? "\n  then: keep alive\n" : "\n  then: close\n";
  if (head.expects == expectation::to_continue) text += "  waits for 100 (Continue)\n";
  if (head.expects == expectation::unknown) text += "  expects what nobody knows\n";
  for (const field& each : head.fields.all()) {
    text += "  “" + printable(each.name) + "”: “" + printable(each.value) + "”\n";
  }
  return text;
}

class parse_transcript {
 public:
  explicit parse_transcript(const request_limits& limits) : parser_{limits} {}

  // Gives the parser the next piece.
  void feed(std::string_view piece) {
    std::vector<char> all;
    all.reserve(left_.size() + piece.size());
    all.insert(all.end(), left_.begin(), left_.end());
    all.insert(all.end(), piece.begin(), piece.end());
    std::string_view received{all.data(), all.size()};
    while (take(parser_.next(received, head_))) {
    }
    left_ = {received.begin(), received.end()};
  }

  // No piece follows. Returns the transcript.
  [[nodiscard]] std::string finish() {
    end_data();
    if (parser_.why()) return text_;
    const bool is_clean = left_.empty() && parser_.is_between_requests();
    return text_ + (is_clean ? "nothing is left\n" : "a request is not complete\n");
  }

 private:
  using step = request_parser::step;

  // False if the parser has to wait for the next piece, or has refused.
  bool take(step what) {
    if (what == step::data) {
      data_ += parser_.data();
      return true;
    }
    if (what == step::more) return false;
    end_data();
    if (what == step::head) text_ += describe(head_);
    if (what == step::end) text_ += "end\n";
    if (what != step::refused) return true;
    if (!was_refused_) text_ += refused_line();
    was_refused_ = true;
    return false;
  }

  // Writes the data of a body as one text, so that the way it was cut does not show.
  void end_data() {
    const std::string data = std::exchange(data_, {});
    if (data.empty()) return;
    text_ += "data: " + std::to_string(data.size()) + " bytes “" + printable(data) + "”\n";
  }

  [[nodiscard]] std::string refused_line() const {
    return "refused: " + std::to_string(parser_.why().status) + ", " +
           std::string{parser_.why().why} + "\n";
  }

  request_parser parser_;
  request_head head_;
  std::vector<char> left_;
  std::string data_;
  std::string text_;
  bool was_refused_ = false;
};

// The transcript of `bytes`, which come in pieces of `piece_bytes`.
inline std::string transcript_of(std::string_view bytes, std::size_t piece_bytes,
                                 const request_limits& limits = {}) {
  parse_transcript transcript{limits};
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, piece_bytes);
    transcript.feed(piece);
    bytes.remove_prefix(piece.size());
  }
  return transcript.finish();
}

}  // namespace uring::http
