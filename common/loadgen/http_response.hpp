// SPDX-License-Identifier: MIT
// Reads HTTP/1.1 responses from bytes that arrive cut and joined in any way.
// Owns     the unfinished head or line it holds, at most head_bytes_max.
// Lifetime as long as its connection; reset() makes it new.
// Threads  one.
// Errors   progress::malformed, with error() for the reason; reset() before it is used again.
// Rule     takes no byte beyond the response's end, and hands out every body byte exactly once.
// See      RFC 9112, sections 4 to 7
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace loadgen {

class http_response {
 public:
  static constexpr std::size_t head_bytes_max = 64 * 1024;

  enum class progress {
    more,       // all bytes were taken
    body,       // body() holds the next bytes of the body; call read() again with the rest
    complete,   // the response ended; the next read() starts another
    malformed,  // not HTTP/1: error() says why
  };

  // Takes bytes from the front of `data`.
  progress read(std::span<const std::byte>& data);

  // The connection ended. complete: that was the end of the body, as announced.
  progress read_end();

  void reset() { *this = http_response{}; }

  // Of the response that is being read, or was read last.
  [[nodiscard]] int status() const noexcept { return status_; }
  [[nodiscard]] bool closes() const noexcept { return closes_; }
  [[nodiscard]] std::span<const std::byte> body() const noexcept { return body_; }
  [[nodiscard]] std::uint64_t body_bytes() const noexcept { return body_bytes_; }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  enum class stage { head, body, chunk_head, chunk, chunk_end, trailer, body_until_end };

  progress read_head(std::span<const std::byte>& data);
  progress read_chunk_line(std::span<const std::byte>& data);
  progress read_body(std::span<const std::byte>& data);

  progress on_head(std::string_view head);
  progress on_header(std::string_view line);
  progress on_content_length(std::string_view value);
  progress on_chunk_line(std::string_view line);
  progress choose_body();
  progress complete();
  progress fail(std::string why);

  stage stage_ = stage::head;
  std::string text_;        // what has come of a head or line whose end has not
  std::uint64_t left_ = 0;  // bytes of the body or chunk still to come
  std::span<const std::byte> body_;
  std::uint64_t body_bytes_ = 0;
  int status_ = 0;
  bool closes_ = false;
  bool chunked_ = false;
  bool has_length_ = false;
  std::string error_;
};

}  // namespace loadgen
