// SPDX-License-Identifier: MIT
// Takes the body out of the received bytes, however they are cut into pieces.
// Owns     the beginning of a line whose end has not come yet, at most line_bytes_max.
// Lifetime the bytes that take() returns are a part of its argument.
// Threads  one at a time.
// Errors   bad_response if the framing is broken.
// Rule     only is_complete() proves that the whole body came; an EOF before that is an error.
// See      rfc9112, sections 6.3, 7.1 and 8
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "chunk_line.hpp"
#include "http_grammar.hpp"
#include "response_head.hpp"

namespace uring::http {

class body_decoder {
 public:
  static constexpr std::size_t line_bytes_max = 4096;
  static constexpr std::size_t trailer_lines_max = 100;

  explicit body_decoder(const response_head& head) noexcept
      : ends_{head.ends}, left_{head.ends == body_end::counted ? head.body_bytes : 0} {
    if (ends_ == body_end::none || (ends_ == body_end::counted && left_ == 0)) place_ = place::end;
    if (ends_ == body_end::chunked) place_ = place::size_line;
  }

  // Removes decoded bytes from the front of `received`, and returns those that belong to the body.
  // The result is empty only if no byte is left in `received`, or if the body has ended.
  [[nodiscard]] std::string_view take(std::string_view& received) {
    while (!received.empty() && place_ != place::end) {
      if (place_ == place::data) return take_data(received);
      if (const auto line = take_line_of_framing(received)) on_line(*line);
    }
    return {};
  }

  // The server has closed the connection. A body of the kind body_end::at_eof is then complete.
  void on_eof() noexcept {
    if (ends_ == body_end::at_eof) place_ = place::end;
  }

  [[nodiscard]] bool is_complete() const noexcept { return place_ == place::end; }

 private:
  enum class place { data, size_line, after_chunk, trailer, end };

  std::string_view take_data(std::string_view& received) {
    std::size_t bytes = received.size();
    if (ends_ != body_end::at_eof) bytes = std::min<std::uint64_t>(bytes, left_);
    const std::string_view data = received.substr(0, bytes);
    received.remove_prefix(bytes);
    if (ends_ != body_end::at_eof) left_ -= bytes;
    if (ends_ != body_end::at_eof && left_ == 0) {
      place_ = ends_ == body_end::chunked ? place::after_chunk : place::end;
    }
    return data;
  }

  // Returns a whole line. If its end has not come yet, keeps its beginning and returns nothing.
  std::optional<std::string> take_line_of_framing(std::string_view& received) {
    const std::size_t end = received.find('\n');
    const bool is_whole = end != std::string_view::npos;
    line_.append(received.substr(0, end));
    received.remove_prefix(is_whole ? end + 1 : received.size());
    if (line_.size() > line_bytes_max) throw bad_response{"a line of its chunks is too long"};
    if (!is_whole) return std::nullopt;
    if (line_.ends_with('\r')) line_.pop_back();
    return std::exchange(line_, {});
  }

  void on_line(std::string_view line) {
    if (place_ == place::after_chunk) {
      if (!line.empty()) throw bad_response{"a chunk is longer than it said"};
      place_ = place::size_line;
    } else if (place_ == place::size_line) {
      const std::optional<chunk_line> chunk = read_chunk_line(trimmed(line));
      if (!chunk) throw bad_response{"a chunk has no size"};
      left_ = chunk->bytes;
      place_ = left_ > 0 ? place::data : place::trailer;
    } else if (line.empty()) {
      place_ = place::end;
    } else if (++trailer_lines_ > trailer_lines_max) {
      throw bad_response{"its trailer does not end"};
    }
  }

  body_end ends_;
  std::uint64_t left_;  // bytes left of the body if counted, of the chunk if chunked
  place place_ = place::data;
  std::string line_;
  std::size_t trailer_lines_ = 0;
};

}  // namespace uring::http
