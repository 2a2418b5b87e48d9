// SPDX-License-Identifier: MIT
// What stands on a command line, as a request.
// Owns     nothing.
// Lifetime none.
// Threads  any.
// Errors   std::runtime_error with the address.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "http_get.hpp"
#include "response_head.hpp"

namespace uring {

// "http://HOST:PORT/PATH", "HOST:PORT/PATH", "[::1]:8000": what is left out is http, 80 and "/".
[[nodiscard]] inline get_request parse_address(std::string_view address) {
  const std::string whole{address};
  if (address.starts_with("http://")) address.remove_prefix(7);
  get_request request;
  const std::size_t slash = std::min(address.find('/'), address.size());
  request.path = slash == address.size() ? "/" : address.substr(slash);
  std::string_view host = address.substr(0, slash);
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != host.npos && host.find(']', colon) == host.npos;
  if (has_port) {
    const std::uint64_t port = to_number(host.substr(colon + 1), 10);
    if (port == 0 || port > 65535) throw std::runtime_error{whole + " has no port"};
    request.port = static_cast<std::uint16_t>(port);
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) throw std::runtime_error{"“" + whole + "” names no host"};
  request.host = host;
  return request;
}

}  // namespace uring
