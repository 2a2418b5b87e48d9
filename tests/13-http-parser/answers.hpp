// SPDX-License-Identifier: MIT
// What a parser makes of the bytes of a connection, in a line: "GET / of a | POST / of a [hi] | .".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "guarded_text.hpp"
#include "parse_transcript.hpp"
#include "request_head.hpp"
#include "request_limits.hpp"
#include "request_parser.hpp"

namespace course_test {

inline std::string in_short(const uring::http::request_head& head) {
  using uring::http::expectation;
  std::string text = std::string{head.method_text} + " " + std::string{head.target.text};
  if (!head.host.empty()) text += " of " + std::string{head.host};
  if (!head.keep_alive) text += " close";
  if (head.expects == expectation::to_continue) text += " 100?";
  if (head.expects == expectation::unknown) text += " 417!";
  return text;
}

// All of `sent` at once, against an unreadable page. A body stands in brackets, "|" ends a request,
// and at last comes a dot, or "…" for a request that is not complete, or the status of a refusal.
inline std::string answer_to(std::string_view sent,
                             const uring::http::request_limits& limits = {}) {
  using step = uring::http::request_parser::step;
  const guarded_text text{sent};
  std::string_view received = text.view();
  uring::http::request_parser parser{limits};
  uring::http::request_head head;
  std::string answer;
  std::string body;
  while (true) {
    const step what = parser.next(received, head);
    if (what == step::refused) return answer + std::to_string(parser.why().status);
    if (what == step::more) break;
    if (what == step::head) answer += in_short(head) + " ";
    if (what == step::data) body += parser.data();
    if (what != step::end) continue;
    answer += body.empty() ? "| " : "[" + body + "] | ";
    body.clear();
  }
  const bool is_clean = received.empty() && parser.is_between_requests();
  return answer + (is_clean ? "." : "…");
}

// Where the answer depends on how `sent` is cut: in two pieces at every place, in three at every
// two places if it is short, and byte by byte. Empty if it never does.
inline std::string first_difference(std::string_view sent,
                                    const uring::http::request_limits& limits = {}) {
  using uring::http::parse_transcript;
  constexpr std::size_t short_bytes = 72;
  const std::string whole = uring::http::transcript_of(sent, sent.size() + 1, limits);
  const auto differs = [&](std::size_t first, std::size_t second) {
    parse_transcript cut{limits};
    cut.feed(sent.substr(0, first));
    cut.feed(sent.substr(first, second - first));
    cut.feed(sent.substr(second));
    return cut.finish() != whole;
  };
  for (std::size_t first = 0; first <= sent.size(); ++first) {
    const std::size_t last = sent.size() <= short_bytes ? sent.size() : first;
    for (std::size_t second = first; second <= last; ++second) {
      if (!differs(first, second)) continue;
      return "cut before the bytes " + std::to_string(first) + " and " + std::to_string(second);
    }
  }
  return uring::http::transcript_of(sent, 1, limits) == whole ? "" : "cut into single bytes";
}

}  // namespace course_test
