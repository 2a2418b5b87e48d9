// SPDX-License-Identifier: MIT
// "example.com:8080", as it stands in Host and in a target.
// Lifetime host and port are parts of the text.
// See      rfc3986, section 3.2; rfc9110, sections 4.2 and 7.2
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "http_grammar.hpp"

namespace uring::http {

struct authority {
  std::string_view host;  // never empty; with its brackets if it is an IPv6 address
  std::string_view port;  // digits, or empty
};

[[nodiscard]] constexpr bool is_hex_digit(char c) noexcept {
  return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'f');
}

inline constexpr byte_set registered_name_bytes{"-._~!$&'()*+,;=%"};

// reg-name = *( unreserved / pct-encoded / sub-delims ); an IPv4 address has that form, too.
[[nodiscard]] constexpr bool is_registered_name(std::string_view text) noexcept {
  for (std::size_t at = text.find('%'); at < text.size(); at = text.find('%', at + 1)) {
    const std::string_view digits = text.substr(at + 1, 2);
    if (digits.size() != 2 || !is_hex_digit(digits[0]) || !is_hex_digit(digits[1])) return false;
  }
  return !text.empty() && registered_name_bytes.has_all_of(text);
}

// Whether this may be an IPv6 address. A wrong one does no harm, because no host has such a name.
[[nodiscard]] constexpr bool is_ipv6_text(std::string_view text) noexcept {
  if (text.find(':') == std::string_view::npos) return false;
  return text.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
}

[[nodiscard]] inline bool is_port(std::string_view text) {
  constexpr std::uint64_t port_max = 65535;
  return text.empty() || read_number(text, 10).value_or(port_max + 1) <= port_max;
}

// The result is empty if the text has no host, has a user name before the host, or has a port that
// is not a number.
[[nodiscard]] inline std::optional<authority> read_authority(std::string_view text) {
  const bool has_brackets = text.starts_with('[');
  const std::size_t host_end = has_brackets ? text.find(']') : text.find(':');
  if (has_brackets && host_end == std::string_view::npos) return std::nullopt;
  const std::string_view host = text.substr(0, has_brackets ? host_end + 1 : host_end);
  const std::string_view rest = text.substr(host.size());
  const bool is_host =
      has_brackets ? is_ipv6_text(host.substr(1, host.size() - 2)) : is_registered_name(host);
  if (!is_host || (!rest.empty() && rest.front() != ':')) return std::nullopt;
  const std::string_view port = rest.substr(rest.empty() ? 0 : 1);
  if (!is_port(port)) return std::nullopt;
  return authority{host, port};
}

}  // namespace uring::http
