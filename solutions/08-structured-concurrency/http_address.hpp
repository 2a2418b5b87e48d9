// SPDX-License-Identifier: MIT
// Turns an address on a command line into a request.
// Errors   std::runtime_error that names the address.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "http_get.hpp"

namespace uring::http {

// Takes the digits of a number from 1 to 65535; for anything else the result is empty.
[[nodiscard]] inline std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc{} || stopped != end || port == 0) return std::nullopt;
  return port;
}

// "http://HOST:PORT/PATH", "HOST:PORT/PATH", "[::1]:8000": the defaults are http, 80 and "/".
[[nodiscard]] inline get_request parse_address(std::string_view address) {
  const std::string whole{address};
  if (address.starts_with("http://")) address.remove_prefix(7);
  get_request request;
  const std::size_t slash = std::min(address.find('/'), address.size());
  request.path = slash == address.size() ? "/" : address.substr(slash);
  std::string_view host = address.substr(0, slash);
  const std::size_t colon = host.rfind(':');
  constexpr std::size_t none = std::string_view::npos;
  const bool has_port = colon != none && host.find(']', colon) == none;
  if (has_port) {
    const std::optional<std::uint16_t> port = parse_port(host.substr(colon + 1));
    if (!port) throw std::runtime_error{"“" + whole + "”: a port is a number from 1 to 65535"};
    request.port = *port;
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) throw std::runtime_error{"“" + whole + "” names no host"};
  request.host = host;
  return request;
}

}  // namespace uring::http
