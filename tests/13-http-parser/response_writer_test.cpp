// SPDX-License-Identifier: MIT
// Task 13.5: responses into a buffer that may be too small.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parse_transcript.hpp"
#include "response_head.hpp"
#include "response_writer.hpp"
#include "status_reasons.hpp"

using Catch::Matchers::ContainsSubstring;
using uring::http::printable;
using uring::http::response_writer;

namespace {

constexpr std::string_view not_found =
    "HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\nX: y\r\n\r\nhello\n";

bool write_not_found(std::span<char> into, std::string& text) {
  response_writer writer{into};
  writer.status(404).field("Content-Length", 6).field("X", "y").end_head().body("hello\n");
  text = writer.text();
  return writer.ok();
}

}  // namespace

TEST_CASE("13.5 a response is a status line, fields, an empty line and a body", "[13.5]") {
  std::array<char, 200> room;
  std::string text;
  {
    INFO("there is more than enough room");
    CHECK(write_not_found(room, text));
    CHECK(text == not_found);
  }
  UNSCOPED_INFO("chapter 07's client reads it");
  CHECK(uring::http::parse_response_head(text).status == 404);
}

TEST_CASE("13.5 a response that just fits is whole", "[13.5]") {
  std::vector<char> room(not_found.size());
  std::string text;
  INFO("the last byte of the buffer is room, too");
  CHECK(write_not_found(room, text));
  CHECK(text == not_found);
}

TEST_CASE("13.5 a response that does not fit is none", "[13.5]") {
  for (std::size_t bytes = 0; bytes < not_found.size(); ++bytes) {
    std::string room(bytes + not_found.size(), '!');
    std::string text;
    UNSCOPED_INFO("there is room for " << bytes << " of " << not_found.size() << " bytes");
    CHECK_FALSE(write_not_found(std::span{room}.first(bytes), text));
    UNSCOPED_INFO("half a response was given out");
    CHECK(text.empty());
    UNSCOPED_INFO("bytes were written behind the buffer");
    CHECK(room.find_first_not_of('!', bytes) == std::string::npos);
  }
}

TEST_CASE("13.5 what comes behind something that did not fit is not written", "[13.5]") {
  std::array<char, 32> room;
  room.fill('!');
  response_writer writer{room};
  writer.body("1234567890").body(std::string(23, 'x')).body("abc");
  {
    INFO("a part of the response did not fit, so there is none, whatever came behind that part");
    CHECK_FALSE(writer.ok());
    CHECK(writer.text() == "");
  }
  const std::string written{room.begin(), room.end()};
  UNSCOPED_INFO("“abc” would have fitted, but a response has no gaps");
  CHECK_THAT(written, !ContainsSubstring("abc"));
  UNSCOPED_INFO("23 bytes have no room where 22 are free, and a part of them is not copied either");
  CHECK_THAT(written, !ContainsSubstring("x"));
}

TEST_CASE("13.5 a value cannot end its line", "[13.5]") {
  for (const std::string& value :
       {std::string{"a\r\nSet-Cookie: b"}, std::string{"a\nb"}, std::string{"a\rb"},
        std::string{"a\r\n\r\n<html>"}, std::string{"a\0b", 3}, std::string{"\r\n"},
        std::string{"\x1b[2J"}, std::string{"\x7f"}}) {
    std::array<char, 200> room;
    response_writer writer{room};
    writer.status(301).field("Location", value).end_head();
    INFO("“" << printable(value)
             << "” has a control byte: a line feed begins a line, or a response, of its own, "
                "and no client reads a NUL, an escape or a DEL as we meant it");
    CHECK_FALSE(writer.ok());
    CHECK(writer.text().empty());
  }
  std::array<char, 200> room;
  response_writer writer{room};
  writer.status(301).field("Location", "a\nb").field("X", "y").end_head();
  UNSCOPED_INFO("a good value behind a bad one does not mend the response: ok_ stays false");
  CHECK_FALSE(writer.ok());
}

TEST_CASE("13.5 any other value is written as it is", "[13.5]") {
  for (const std::string value : {"", "a\tb", "caf\xc3\xa9", "\"x\": y"}) {
    std::array<char, 200> room;
    response_writer writer{room};
    UNSCOPED_INFO("“" << value << "” has no control byte but a tab, so a field may have it");
    CHECK(writer.field("A", value).text() == "A: " + value + "\r\n");
  }
}

TEST_CASE("13.5 a body has any bytes, and may be empty", "[13.5]") {
  std::array<char, 200> room;
  response_writer writer{room};
  const std::string_view bytes{"a\0b\r\n\0c", 7};
  UNSCOPED_INFO("a NUL does not end a body: a function for C strings stops there");
  CHECK(writer.body(bytes).text() == bytes);
  UNSCOPED_INFO("nothing was added. With --sanitize: memcpy() may not get a null pointer");
  CHECK(writer.body({}).text() == bytes);
  CHECK(writer.ok());
}

TEST_CASE("13.5 numbers are written in full", "[13.5]") {
  std::array<char, 200> room;
  response_writer writer{room};
  writer.field("A", 0).field("B", std::numeric_limits<std::uint64_t>::max());
  CHECK(writer.text() == "A: 0\r\nB: 18446744073709551615\r\n");
}

TEST_CASE("13 every status that the course sends has a reason", "[13]") {
  for (const int status : {100, 200, 204, 206, 301, 304, 400, 403, 404, 405, 408,
                           412, 413, 414, 416, 417, 421, 431, 500, 501, 503, 505}) {
    UNSCOPED_INFO(status << " has no reason in status_reasons.hpp");
    CHECK_FALSE(uring::http::reason_of(status).empty());
  }
  CHECK(uring::http::reason_of(404) == "Not Found");
  CHECK(uring::http::reason_of(299).empty());
}
