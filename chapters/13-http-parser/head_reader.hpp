// SPDX-License-Identifier: MIT
// Finds the end of a line, and of a whole head, in bytes that come in pieces.
// Owns     nothing but counts, so between two calls the bytes may be moved to another buffer.
// Rule     it looks at each byte once, however small the pieces are, and twice at a CR that ends a
//          piece. After the limit of a line, it looks only at the two bytes that may be the line's
//          CR LF.
// See      rfc9112, sections 2.2 and 3
#pragma once

#include <cstddef>
#include <string_view>

#include "control_bytes.hpp"
#include "refusal.hpp"
#include "request_limits.hpp"
#include "todo.hpp"

namespace uring::http {

enum class line_state {
  whole,       // with its CR LF
  incomplete,  // its end has not come yet
  too_long,    // more bytes cannot change that
  bad_byte,    // a CR or an LF alone, a NUL, or another control byte
};

class line_reader {
 public:
  // `text` begins where the line begins. If the line was incomplete, the caller calls again with
  // the same bytes and more after them. seen_ is the number of bytes that need no second look.
  //
  // find_control(text, from) returns the position of the first control byte at `from` or later, or
  // text.size() if there is none. The first control byte of a line must be the CR that ends it, and
  // an LF must follow. A CR whose LF has not come yet is incomplete. At most `bytes_max` bytes may
  // stand before the CR, so look at one byte more. If that byte is a control byte other than CR,
  // the result is bad_byte. If it is no control byte, the line is too_long, and the bytes after it
  // must not change that. Store in seen_ the number of bytes looked at, without the CR.
  line_state look(std::string_view text, std::size_t bytes_max) {
    COURSE_TODO("13.2");
  }

  // The number of bytes of a whole line, without its CR LF and with it.
  [[nodiscard]] std::size_t bytes() const noexcept { return seen_; }
  [[nodiscard]] std::size_t bytes_with_end() const noexcept { return seen_ + 2; }

  // Goes on to the next line.
  void next() noexcept { seen_ = 0; }

 private:
  std::size_t seen_ = 0;
};

class head_reader {
 public:
  struct found {
    std::size_t bytes = 0;  // of the head, its empty line included; 0 if it is not complete
    refusal refused;
  };

  // `received` begins where the request begins, as in line_reader::look().
  found look(std::string_view received, const request_limits& limits) {
    const std::string_view head = received.substr(0, limits.head_bytes_max);
    while (true) {
      const std::string_view rest = head.substr(begin_);
      const line_state state = line_.look(rest, line_bytes_max(limits));
      if (state != line_state::whole) return stopped(state, rest, head, limits);
      begin_ += line_.bytes_with_end();
      const bool is_empty = line_.bytes() == 0;
      line_.next();
      if (is_empty && lines_ > 0) return {.bytes = begin_, .refused = {}};
      if (const refusal refused = count_line(is_empty, limits))
        return {.bytes = 0, .refused = refused};
    }
  }

 private:
  [[nodiscard]] std::size_t line_bytes_max(const request_limits& limits) const noexcept {
    return lines_ == 0 ? limits.request_line_bytes_max : limits.field_line_bytes_max;
  }

  // Counts a line that does not end the head. One empty line before the request line is skipped,
  // because some clients sent one after the body of the previous request (rfc9112, 2.2). lines_
  // counts the other lines. The first of them is the request line, and each further one is a field.
  refusal count_line(bool is_empty, const request_limits& limits) {
    if (is_empty) {
      if (has_skipped_) return bad_request("no request line");
      has_skipped_ = true;
      return {};
    }
    ++lines_;
    if (lines_ - 1 > limits.fields_max) return {.status = 431, .why = "too many fields"};
    return {};
  }

  // `head` is what has come of the head, at most limits.head_bytes_max bytes. `rest` is its last
  // part, which begins with the line that has `state`. lines_ counts the lines before that line.
  // If the line is incomplete, and `head` has head_bytes_max bytes, refuse with 431, even if the
  // line is the request line. If `head` has fewer bytes, return {}, because more bytes may complete
  // the line. If a field is too long, even in a full head, refuse with 431. If the request line is
  // too long, refuse with 501 if none of its first limits.request_line_bytes_max bytes is a blank;
  // otherwise refuse with 414. The function refuse() below makes the result.
  found stopped(line_state state, std::string_view rest, std::string_view head,
                const request_limits& limits) const {
    if (state == line_state::bad_byte) return refuse(400, "a control byte");
    COURSE_TODO("13.2");
  }

  static found refuse(int status, std::string_view why) noexcept {
    return {.bytes = 0, .refused = {.status = status, .why = why}};
  }

  line_reader line_;
  std::size_t begin_ = 0;  // the start of the line that line_ looks at
  std::size_t lines_ = 0;  // how many have come whole, without the empty line that was skipped
  bool has_skipped_ = false;
};

}  // namespace uring::http
