// SPDX-License-Identifier: MIT
// Requests and their answers, byte for byte, out of a text file: what 14's server and its peers
// have to say alike.
//
//   [a file]                      a name, and where it is said
//   rfc 9110 15.3.1
//   > GET /hello.txt HTTP/1.1     a line, which ends with CR LF
//   >
//   >> hello                      bytes, no end of line; \r \n \t \\ and \x41 stand for one byte
//   >> * 9000 a                   9000 times a
//   < HTTP/1.1 200 OK             the answer, likewise
//   < Date: *                     any date
//   << hello world\n
//   = open                        or `closes`: what becomes of the connection
//
// Threads  the test's own.
// Errors   std::runtime_error if a file is not like that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace course_test {

struct golden_case {
  std::string name;
  std::string rule;     // "rfc 9110 15.3.1"
  std::string request;  // perhaps several, or less than one
  std::string answer;   // with "Date: *"
  bool stays_open = true;
};

// tests/14-http-server/golden/NAME.txt
[[nodiscard]] std::vector<golden_case> golden_cases(std::string_view name);

// The same with every date of a Date field replaced by a star.
[[nodiscard]] std::string without_dates(std::string answer);

enum class sent_as { whole, bytes };  // in one piece, or byte by byte

// One CHECK for each case of the file: the server on that port answers so.
void check_golden(std::string_view name, std::uint16_t port, sent_as how = sent_as::whole);

}  // namespace course_test
