// SPDX-License-Identifier: MIT
// Decides what a request asks for, before any file is opened: a file, one of the handlers, or
// nothing that we have.
// Lifetime the path is in the room that find_route() was given.
// Errors   route::status, if the request is answered with that alone.
// Rule     a method that we do not know gets 501. A method that we know but that this resource does
//          not have gets 405, and Allow says which methods it has.
// See      rfc9110, sections 9.1, 10.1.1, 10.2.1 and 15.5.6
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "plain_path.hpp"
#include "request_head.hpp"
#include "request_target.hpp"

namespace uring::http {

enum class resource { none, file, counters, echo };

struct route {
  resource what = resource::none;
  int status = 200;             // of the answer, if `what` is none
  std::string_view allow = {};  // if the status is 405
  std::string_view path = {};   // plain: decoded, without dots, begins with a slash
};

inline constexpr std::string_view allow_reading = "GET, HEAD";
inline constexpr std::string_view allow_posting = "POST";

struct handler {
  std::string_view path;
  resource what;
  std::string_view allow;
};

// These paths hide the files of a root that have the same names: counters and echo in a folder "-".
inline constexpr std::array handlers{
    handler{"/-/counters", resource::counters, allow_reading},
    handler{"/-/echo", resource::echo, allow_posting},
};

[[nodiscard]] inline bool is_allowed(request_method asked, std::string_view allow) noexcept {
  if (asked == request_method::post) return allow == allow_posting;
  return (asked == request_method::get || asked == request_method::head) && allow == allow_reading;
}

// `room` is for the decoded path, and as large as a request line may be.
[[nodiscard]] inline route find_route(const request_head& head, std::span<char> room) noexcept {
  if (head.method == request_method::other) return {.status = 501};
  if (head.expects == expectation::unknown) return {.status = 417};
  if (head.target.path.empty()) return {.status = 405, .allow = allow_reading};  // CONNECT, *
  const plain_path plain = make_plain(head.target.path, room);
  if (plain.refused) return {.status = plain.refused.status};
  const auto* const found = std::ranges::find(handlers, plain.path, &handler::path);
  const bool is_file = found == handlers.end();
  const std::string_view allow = is_file ? allow_reading : found->allow;
  if (!is_allowed(head.method, allow)) return {.status = 405, .allow = allow};
  return {.what = is_file ? resource::file : found->what, .path = plain.path};
}

}  // namespace uring::http
