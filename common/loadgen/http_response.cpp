// SPDX-License-Identifier: MIT
#include "http_response.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace loadgen {
namespace {

constexpr std::string_view line_end = "\r\n";
constexpr std::string_view head_end = "\r\n\r\n";

std::string_view as_text(std::span<const std::byte> data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

bool same_word(std::string_view left, std::string_view right) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(left, right, {}, lower, lower);
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Cuts the part before `separator` off `text`; all of it when there is none.
std::string_view cut(std::string_view& text, std::string_view separator) {
  const auto end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + separator.size());
  return part;
}

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    if (same_word(trim(cut(list, ",")), word)) return true;
  }
  return false;
}

std::optional<std::uint64_t> parse_number(std::string_view digits, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value, base);
  if (error != std::errc{} || end != digits.end()) return std::nullopt;
  return value;
}

// Only what can be shown on a terminal, and not too much of it.
std::string quoted(std::string_view text) {
  constexpr std::size_t shown_max = 40;
  std::string result{text.substr(0, shown_max)};
  std::ranges::replace_if(result, [](char c) { return c < ' ' || c > '~'; }, '?');
  return fmt::format("'{}{}'", result, text.size() > shown_max ? "..." : "");
}

// Takes bytes from `data` up to the end of `end`. The result is the text before `end`, in `data`
// itself if all of it came at once, otherwise in `kept`, which the caller clears when done.
std::optional<std::string_view> take_until(std::string_view end, std::span<const std::byte>& data,
                                           std::string& kept) {
  const std::string_view text = as_text(data);
  if (kept.empty()) {
    const auto found = text.find(end);
    if (found != std::string_view::npos) {
      data = data.subspan(found + end.size());
      return text.substr(0, found);
    }
  }
  const std::size_t before = kept.size();
  const std::size_t taken = std::min(text.size(), http_response::head_bytes_max + 1 - before);
  kept.append(text.substr(0, taken));
  const auto found = kept.find(end, before < end.size() ? 0 : before - end.size());
  if (found == std::string::npos) {
    data = data.subspan(taken);
    return std::nullopt;
  }
  data = data.subspan(found + end.size() - before);
  return std::string_view{kept}.substr(0, found);
}

}  // namespace

http_response::progress http_response::read(std::span<const std::byte>& data) {
  if (stage_ == stage::body && left_ == 0) return complete();
  while (!data.empty()) {
    progress result = progress::more;
    switch (stage_) {
      case stage::head:
        result = read_head(data);
        break;
      case stage::chunk_head:
      case stage::chunk_end:
      case stage::trailer:
        result = read_chunk_line(data);
        break;
      case stage::body:
      case stage::chunk:
      case stage::body_until_end:
        result = read_body(data);
        break;
    }
    if (result != progress::more) return result;
  }
  return progress::more;
}

http_response::progress http_response::read_end() {
  return stage_ == stage::body_until_end ? complete() : progress::more;
}

http_response::progress http_response::read_head(std::span<const std::byte>& data) {
  const auto head = take_until(head_end, data, text_);
  if (!head) {
    // A peer that does not even begin like HTTP may never send an empty line.
    constexpr std::string_view start = "HTTP/1.";
    if (!start.starts_with(std::string_view{text_}.substr(0, start.size()))) {
      return fail(fmt::format("{} starts no HTTP/1 response", quoted(text_)));
    }
    if (text_.size() <= head_bytes_max) return progress::more;
    return fail(fmt::format("a head of more than {} bytes", head_bytes_max));
  }
  const progress result = on_head(*head);
  text_.clear();
  return result;
}

http_response::progress http_response::on_head(std::string_view head) {
  status_ = 0;
  closes_ = chunked_ = has_length_ = false;
  left_ = body_bytes_ = 0;

  const std::string_view status_line = cut(head, line_end);
  const bool known = status_line.starts_with("HTTP/1.1 ") || status_line.starts_with("HTTP/1.0 ");
  const auto status =
      parse_number(status_line.substr(std::min<std::size_t>(9, status_line.size()), 3), 10);
  if (!known || !status || *status < 100) {
    return fail(fmt::format("{} is no HTTP/1 status line", quoted(status_line)));
  }
  status_ = static_cast<int>(*status);
  closes_ = status_line[7] == '0';  // 1.0 closes, unless it says keep-alive
  while (!head.empty()) {
    if (on_header(cut(head, line_end)) == progress::malformed) return progress::malformed;
  }
  return choose_body();
}

http_response::progress http_response::on_header(std::string_view line) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return fail(quoted(line) + " is no header");
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trim(line.substr(colon + 1));
  if (same_word(name, "content-length")) return on_content_length(value);
  if (same_word(name, "transfer-encoding")) {
    if (!same_word(value, "chunked")) return fail("transfer-encoding " + quoted(value));
    chunked_ = true;
  }
  if (same_word(name, "connection")) {
    if (has_word(value, "close")) closes_ = true;
    if (has_word(value, "keep-alive")) closes_ = false;
  }
  return progress::more;
}

http_response::progress http_response::on_content_length(std::string_view value) {
  const auto length = parse_number(value, 10);
  if (!length) return fail("content-length " + quoted(value));
  if (has_length_ && *length != left_) return fail("two content-lengths that differ");
  has_length_ = true;
  left_ = *length;
  return progress::more;
}

http_response::progress http_response::choose_body() {
  const bool interim = status_ < 200;  // 100 Continue: the final response follows
  if (interim) return progress::more;
  if (status_ == 204 || status_ == 304) return complete();
  if (chunked_) {
    stage_ = stage::chunk_head;
    return progress::more;
  }
  if (!has_length_) {
    closes_ = true;
    stage_ = stage::body_until_end;
    return progress::more;
  }
  stage_ = stage::body;
  if (left_ == 0) return complete();
  return progress::more;
}

http_response::progress http_response::read_chunk_line(std::span<const std::byte>& data) {
  const auto line = take_until(line_end, data, text_);
  if (!line) {
    return text_.size() <= head_bytes_max ? progress::more : fail("a chunk's line without an end");
  }
  const progress result = on_chunk_line(*line);
  text_.clear();
  return result;
}

http_response::progress http_response::on_chunk_line(std::string_view line) {
  if (stage_ == stage::trailer) return line.empty() ? complete() : progress::more;
  if (stage_ == stage::chunk_end) {
    stage_ = stage::chunk_head;
    return line.empty() ? progress::more : fail("a chunk that is longer than it said");
  }
  const auto size = parse_number(trim(cut(line, ";")), 16);
  if (!size) return fail("a chunk without its size");
  left_ = *size;
  stage_ = left_ == 0 ? stage::trailer : stage::chunk;
  return progress::more;
}

http_response::progress http_response::read_body(std::span<const std::byte>& data) {
  const std::uint64_t wanted = stage_ == stage::body_until_end ? data.size() : left_;
  body_ = data.first(static_cast<std::size_t>(std::min<std::uint64_t>(wanted, data.size())));
  data = data.subspan(body_.size());
  body_bytes_ += body_.size();
  if (stage_ != stage::body_until_end) left_ -= body_.size();
  if (stage_ == stage::chunk && left_ == 0) stage_ = stage::chunk_end;
  return progress::body;
}

http_response::progress http_response::complete() {
  stage_ = stage::head;
  return progress::complete;
}

http_response::progress http_response::fail(std::string why) {
  error_ = std::move(why);
  return progress::malformed;
}

}  // namespace loadgen
