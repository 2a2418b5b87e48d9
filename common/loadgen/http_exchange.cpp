// SPDX-License-Identifier: MIT
#include "http_exchange.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace loadgen {
namespace {

constexpr int compared_status = 200;  // error pages may name the time or the request

byte_loop make_request(const std::string& authority, const std::string& path) {
  const std::string text = fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", path, authority);
  const auto bytes = std::as_bytes(std::span{text});
  return byte_loop{{bytes.begin(), bytes.end()}};
}

}  // namespace

http_exchange::http_exchange(const std::string& authority, const std::string& path,
                             std::size_t connections)
    : requests_{make_request(authority, path)}, responses_(connections) {}

taken http_exchange::take(std::size_t slot, std::span<const std::byte> received) {
  http_response& response = responses_[slot];
  std::span<const std::byte> rest = received;
  while (true) {
    const http_response::progress now = response.read(rest);
    const std::size_t used = received.size() - rest.size();
    if (now == http_response::progress::more) return {used, verdict::unfinished};
    if (now == http_response::progress::malformed) return wrong(response.error());
    if (now == http_response::progress::complete) {
      std::string complaint = finish_body(response);
      if (!complaint.empty()) return wrong(std::move(complaint));
      return {used, response.closes() ? verdict::answered_last : verdict::answered};
    }
    std::string complaint = compare_body(response);
    if (!complaint.empty()) return wrong(std::move(complaint));
  }
}

verdict http_exchange::take_end(std::size_t slot) {
  http_response& response = responses_[slot];
  if (response.read_end() != http_response::progress::complete) return verdict::unfinished;
  std::string complaint = finish_body(response);
  if (!complaint.empty()) return wrong(std::move(complaint)).result;
  return verdict::answered_last;
}

void http_exchange::reconnect(std::size_t slot) {
  responses_[slot].reset();
}

std::string http_exchange::describe_progress(std::size_t slot) const {
  return fmt::format("{} bytes of the body had come", responses_[slot].body_bytes());
}

std::string http_exchange::compare_body(const http_response& response) {
  if (response.status() != compared_status) return {};
  const std::string_view part{reinterpret_cast<const char*>(response.body().data()),
                              response.body().size()};
  const std::size_t offset = response.body_bytes() - part.size();
  const std::size_t known = std::min(part.size(), body_.size() - offset);
  if (std::memcmp(part.data(), body_.data() + offset, known) != 0) {
    const auto expected = std::string_view{body_}.substr(offset, known);
    const auto [differs, _] = std::ranges::mismatch(part.substr(0, known), expected);
    const auto at = offset + static_cast<std::size_t>(differs - part.begin());
    return fmt::format("a body that differs from the first one at offset {}", at);
  }
  if (known == part.size()) return {};
  if (body_state_ == body_is::known) {
    return fmt::format("a body of more than the {} bytes of the first one", body_.size());
  }
  if (offset + part.size() > body_bytes_max) {
    return fmt::format("a body of more than {} MiB", body_bytes_max / (1024 * 1024));
  }
  body_.append(part.substr(known));
  return {};
}

std::string http_exchange::finish_body(const http_response& response) {
  ++statuses_[response.status()];
  if (response.status() != compared_status) return {};
  if (response.body_bytes() != body_.size()) {
    return fmt::format("a body of {} bytes where another had {}", response.body_bytes(),
                       body_.size());
  }
  body_state_ = body_is::known;
  return {};
}

}  // namespace loadgen
