// SPDX-License-Identifier: MIT
// A table of what clients send, what the answer is, and which RFC says so; each row is given whole,
// against an unreadable page, and cut at every place.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "answers.hpp"
#include "parse_transcript.hpp"
#include "request_limits.hpp"

namespace course_test {

struct exchange_row {
  std::string rule;    // "9112, 3.2" is section 3.2 of RFC 9112
  std::string sent;    // all bytes of a connection
  std::string answer;  // as answer_to() says it
};

inline void check_rows(const std::vector<exchange_row>& rows,
                       const uring::http::request_limits& limits = {}) {
  for (const exchange_row& row : rows) {
    UNSCOPED_INFO("RFC " << row.rule << "\nsent: " << uring::http::printable(row.sent));
    CHECK(answer_to(row.sent, limits) == row.answer);
    UNSCOPED_INFO("the answer depends on how TCP cuts it: " << uring::http::printable(row.sent));
    CHECK(first_difference(row.sent, limits) == "");
  }
}

// A GET of "/" with these field lines, each with its CR LF, behind Host.
inline std::string get_with(const std::string& lines) {
  return "GET / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n";
}

inline std::string post_with(const std::string& lines, const std::string& body) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n" + body;
}

// In chunks.
inline std::string post_chunks(const std::string& body) {
  return post_with("Transfer-Encoding: chunked\r\n", body);
}

}  // namespace course_test
