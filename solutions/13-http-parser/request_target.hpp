// SPDX-License-Identifier: MIT
// The target of a request: the second word of its first line, in one of four forms.
// Lifetime its views are parts of the line.
// Rule     nothing is decoded here, so that a log and a comparison get the text as it came.
// See      rfc9112, section 3.2; rfc9110, sections 4.2.4, 7.1 and 7.4
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "authority.hpp"
#include "http_grammar.hpp"
#include "refusal.hpp"

namespace uring::http {

// The methods of rfc9110 and rfc5789. Upper and lower case make different methods.
enum class request_method : std::uint8_t {
  get,
  head,
  post,
  put,
  delete_,
  connect,
  options,
  trace,
  patch,
  other,  // any other token; a server that does not support it answers 501
};

enum class target_form : std::uint8_t {
  origin,     // /path?query
  absolute,   // http://host/path?query, as a proxy gets it; a server has to take it, too
  authority,  // host:port, with CONNECT alone
  asterisk,   // *, with OPTIONS alone
};

struct request_target {
  std::string_view text;  // as it came; only visible ASCII
  target_form form = target_form::origin;
  std::string_view authority;  // in the absolute and the authority form
  std::string_view path;       // not decoded; begins with a slash; empty in the last two forms
  std::string_view query;      // not decoded; without its question mark
  bool has_query = false;      // "/?" has an empty one
};

// A URI consists of visible ASCII. A few of those characters, such as | and {, are forbidden, but
// browsers send them. A fragment belongs to the browser, and is never sent.
[[nodiscard]] constexpr bool is_target_text(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != '#'; });
}

inline void split_query(std::string_view path_and_query, request_target& into) noexcept {
  const std::size_t mark = path_and_query.find('?');
  into.path = path_and_query.substr(0, mark);
  into.has_query = mark != std::string_view::npos;
  into.query = into.has_query ? path_and_query.substr(mark + 1) : std::string_view{};
}

[[nodiscard]] inline refusal read_absolute_form(request_target& into) {
  const std::size_t scheme_end = into.text.find("://");
  const bool has_scheme = scheme_end != std::string_view::npos;
  const std::string_view scheme = into.text.substr(0, scheme_end);
  // A client that asks for https on a connection without TLS has come here by mistake.
  if (has_scheme && same_word(scheme, "https")) return {.status = 421, .why = "https without TLS"};
  if (!has_scheme || !same_word(scheme, "http")) {
    return bad_request("the target has none of the four forms");
  }
  const std::string_view rest = into.text.substr(scheme_end + 3);
  into.form = target_form::absolute;
  into.authority = rest.substr(0, rest.find_first_of("/?"));
  if (!read_authority(into.authority)) return bad_request("the target's host is invalid");
  split_query(rest.substr(into.authority.size()), into);
  if (into.path.empty()) into.path = "/";
  return {};
}

// Fills in the rest of `into`, whose text is there already.
[[nodiscard]] inline refusal read_target(request_method method, request_target& into) {
  const std::string_view text = into.text;
  if (text.empty() || !is_target_text(text)) return bad_request("a byte that no URI may hold");
  if (method == request_method::connect) {
    const std::optional<authority> to = read_authority(text);
    if (!to || to->port.empty()) return bad_request("CONNECT needs host:port");
    into.form = target_form::authority;
    into.authority = text;
    return {};
  }
  if (text == "*") {
    if (method != request_method::options) return bad_request("* is for OPTIONS");
    into.form = target_form::asterisk;
    return {};
  }
  if (!text.starts_with('/')) return read_absolute_form(into);
  split_query(text, into);
  return {};
}

}  // namespace uring::http
