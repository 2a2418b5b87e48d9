// SPDX-License-Identifier: MIT
// Task 13.2: lines and heads that come in pieces, and the limits of both.
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <string>
#include <string_view>

#include "guarded_text.hpp"
#include "head_reader.hpp"
#include "parse_transcript.hpp"
#include "request_limits.hpp"
#include "shown_enums.hpp"

using course_test::guarded_text;
using uring::http::head_reader;
using uring::http::line_reader;
using uring::http::line_state;
using uring::http::printable;
using uring::http::request_limits;

namespace {

constexpr std::size_t roomy = 1000;

line_state look_once(std::string_view text, std::size_t bytes_max = roomy) {
  const guarded_text guarded{text};
  line_reader reader;
  return reader.look(guarded.view(), bytes_max);
}

// What a head_reader says when `text` comes byte by byte: of its end, or of why it is refused.
head_reader::found look_bytewise(std::string_view text, const request_limits& limits) {
  head_reader reader;
  for (std::size_t come = 0; come <= text.size(); ++come) {
    const guarded_text guarded{text.substr(0, come)};
    const head_reader::found found = reader.look(guarded.view(), limits);
    if (found.bytes > 0 || found.refused) return found;
  }
  return {};
}

head_reader::found look_at_once(std::string_view text, const request_limits& limits) {
  const guarded_text guarded{text};
  head_reader reader;
  return reader.look(guarded.view(), limits);
}

constexpr int depends_on_the_cut = -1;

// The status of a refusal, or 0, if it is the same in one piece and byte by byte.
int status_of(const std::string& text, const request_limits& limits) {
  const int at_once = look_at_once(text, limits).refused.status;
  return look_bytewise(text, limits).refused.status == at_once ? at_once : depends_on_the_cut;
}

std::string of(char byte, std::size_t count) {
  std::string text(count, byte);
  return text;
}

}  // namespace

TEST_CASE("13.2 a line ends with CR LF", "[13.2]") {
  line_reader reader;
  UNSCOPED_INFO("the line has its CR LF; what stands behind that is the next line");
  CHECK(reader.look("GET / HTTP/1.1\r\nHost: a\r\n", roomy) == line_state::whole);
  {
    INFO("bytes() are those of the line without its end: seen_ is the place of the CR");
    CHECK(reader.bytes() == 14);
    CHECK(reader.bytes_with_end() == 16);
  }
  line_reader empty;
  INFO("a line may be empty");
  CHECK(empty.look("\r\n", roomy) == line_state::whole);
  CHECK(empty.bytes() == 0);
}

TEST_CASE("13.2 a line is incomplete until its LF has come", "[13.2]") {
  for (const std::string_view text : {"", "G", "GET /", "GET /\r"}) {
    UNSCOPED_INFO("only “" << printable(text) << "” has come");
    CHECK(look_once(text) == line_state::incomplete);
  }
}

TEST_CASE("13.2 a control byte in a line is refused at once", "[13.2]") {
  for (const std::string& text :
       {std::string{"a\nb"}, std::string{"\n"}, std::string{"a\rb"}, std::string{"\r\r\n"},
        std::string{"a\0b", 3}, std::string{"\x1b[2J"}, std::string{"a\x7f"}, std::string{"\v"}}) {
    UNSCOPED_INFO("“" << printable(text) << "”: the first control byte is not the CR of CR LF");
    CHECK(look_once(text) == line_state::bad_byte);
  }
  UNSCOPED_INFO("a tab, and bytes that are not ASCII, are no control bytes");
  CHECK(look_once("a\tb\xc3\xa9\xff\r\n") == line_state::whole);
}

TEST_CASE("13.2 a line goes on where the last look has ended", "[13.2]") {
  const std::string line = "Cookie: a=b; c=d; and so on\r\n";
  line_reader reader;
  for (std::size_t at = 0; at < line.size() - 2; ++at) {
    const std::string come = std::string(at, '\0') + line[at];  // NUL: nobody may look again
    UNSCOPED_INFO(
        "bytes that were looked at before are looked at again: if all of them are, a client that "
        "sends byte by byte makes you look at n²/2 bytes of a head of n");
    REQUIRE(reader.look(come, roomy) == line_state::incomplete);
  }
  const std::string come = std::string(line.size() - 2, '\0') + "\r\n";
  INFO("the CR has come with its LF: neither was looked at before");
  CHECK(reader.look(come, roomy) == line_state::whole);
  CHECK(reader.bytes() == line.size() - 2);
  line_reader cut;
  UNSCOPED_INFO("the LF has not come");
  CHECK(cut.look("Host: a\r", roomy) == line_state::incomplete);
  UNSCOPED_INFO("the bytes before a CR that ends a piece were looked at, too: store that in seen_");
  CHECK(cut.look(std::string(7, '\0') + "\r\n", roomy) == line_state::whole);
}

TEST_CASE("13.2 the bytes may be moved between two looks", "[13.2]") {
  line_reader reader;
  {
    const std::string there = "Host: exa";
    UNSCOPED_INFO("nine bytes without a control byte: the end has not come");
    CHECK(reader.look(there, roomy) == line_state::incomplete);
  }
  const guarded_text here{"Host: example\r\n"};
  INFO("seen_ is a place in the line, wherever its bytes stand now");
  CHECK(reader.look(here.view(), roomy) == line_state::whole);
  CHECK(reader.bytes() == 13);
}

TEST_CASE("13.2 a line may be as long as its limit, and not a byte longer", "[13.2]") {
  {
    INFO("a line of exactly its limit is whole");
    CHECK(look_once("12345678\r\n", 8) == line_state::whole);
    CHECK(look_once("\r\n", 0) == line_state::whole);
  }
  UNSCOPED_INFO("only this line counts: what stands behind its CR LF is the next line");
  CHECK(look_once("12345678\r\nHost: a\r\n", 8) == line_state::whole);
  {
    INFO("eight bytes may become a line of eight: only its end has not come");
    CHECK(look_once("12345678\r", 8) == line_state::incomplete);
    CHECK(look_once("12345678", 8) == line_state::incomplete);
  }
  INFO("nine bytes without an end cannot become a line of eight: that is certain now");
  CHECK(look_once("123456789", 8) == line_state::too_long);
  CHECK(look_once("123456789\r\n", 8) == line_state::too_long);
  CHECK(look_once("1\r\n", 0) == line_state::too_long);
}

TEST_CASE("13.2 what stands behind the limit changes nothing", "[13.2]") {
  {
    INFO("the line is too long, wherever it was cut; the control byte comes too late");
    CHECK(look_once("123456789\n", 8) == line_state::too_long);
    CHECK(look_once(std::string_view{"1234567890\0", 11}, 8) == line_state::too_long);
  }
  INFO("the control byte comes first, and the line is refused for it");
  CHECK(look_once("1234567\n9", 8) == line_state::bad_byte);
  CHECK(look_once("12345678\n", 8) == line_state::bad_byte);
}

TEST_CASE("13.2 a head ends with an empty line", "[13.2]") {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const request_limits limits;
  for (std::size_t bytes = 0; bytes < head.size(); ++bytes) {
    const head_reader::found found = look_at_once(head.substr(0, bytes), limits);
    INFO("only the first " << bytes << " bytes have come");
    CHECK(found.bytes == 0);
    CHECK(found.refused.status == 0);
  }
  {
    INFO("the head is whole, and its size is that of all its lines with their ends");
    CHECK(look_at_once(head, limits).bytes == head.size());
    CHECK(look_at_once(head + "the next request", limits).bytes == head.size());
  }
  UNSCOPED_INFO("byte by byte its end is not found: was a CR without its LF counted as looked at?");
  CHECK(look_bytewise(head + "more", limits).bytes == head.size());
}

TEST_CASE("13.2 one empty line before a request is skipped, and not two", "[13.2]") {
  const std::string head = "GET / HTTP/1.1\r\n\r\n";
  const request_limits limits;
  INFO("rfc9112, 2.2: a server should ignore at least one empty line");
  CHECK(look_bytewise("\r\n" + head, limits).bytes == head.size() + 2);
  CHECK(status_of("\r\n\r\n" + head, limits) == 400);
}

TEST_CASE("13.2 a head with a control byte is a bad request", "[13.2]") {
  const request_limits limits;
  {
    INFO("an LF without its CR, or a CR without its LF (rfc9112, 2.2)");
    CHECK(status_of("GET / HTTP/1.1\nHost: a\n\n", limits) == 400);
    CHECK(status_of("GET / HTTP/1.1\r\nHost: a\n\r\n", limits) == 400);
    CHECK(status_of("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", limits) == 400);
  }
  UNSCOPED_INFO("a client that speaks TLS is told at its first byte");
  CHECK(status_of("\x16\x03\x01", limits) == 400);
}

TEST_CASE("13.2 a request line at its limit, and one past it", "[13.2]") {
  const request_limits limits{.request_line_bytes_max = 32};
  const std::string at_limit = "GET /" + of('a', 32 - 14) + " HTTP/1.1";
  REQUIRE(at_limit.size() == 32);
  UNSCOPED_INFO("a request line of exactly its limit is read");
  CHECK(look_bytewise(at_limit + "\r\n\r\n", limits).bytes == 36);
  UNSCOPED_INFO("a target that is too long is answered with 414 (rfc9112, 3)");
  CHECK(status_of("GET /a" + of('a', 32 - 14) + " HTTP/1.1\r\n\r\n", limits) == 414);
  UNSCOPED_INFO("without a blank it is a method that is too long: 501 (rfc9112, 3)");
  CHECK(status_of(of('A', 33), limits) == 501);
  const std::string behind_a_method = " / HTTP/1.1\r\n\r\n";
  UNSCOPED_INFO(
      "a blank behind the limit changes nothing: the blank after the method has to be one of the "
      "first request_line_bytes_max bytes");
  CHECK(status_of(of('A', 32) + behind_a_method, limits) == 501);
  UNSCOPED_INFO("the last byte within the limit is a blank: the method has ended");
  CHECK(status_of(of('A', 31) + behind_a_method, limits) == 414);
  UNSCOPED_INFO("the line after an empty one is still the request line, with its limit and 414");
  CHECK(status_of("\r\nGET /a" + of('a', 32 - 14) + " HTTP/1.1\r\n\r\n", limits) == 414);
  UNSCOPED_INFO("an empty line before the request line is no part of it: `rest` begins behind it");
  CHECK(status_of("\r\n" + of('A', 31) + behind_a_method, limits) == 414);
}

TEST_CASE("13.2 a field at its limit, and one past it", "[13.2]") {
  const request_limits limits{.field_line_bytes_max = 16};
  const std::string line = "GET /a/target/that/is/longer HTTP/1.1\r\n";
  UNSCOPED_INFO("a field of exactly its limit is read; the request line has a limit of its own");
  CHECK(look_bytewise(line + "A: " + of('a', 13) + "\r\n\r\n", limits).bytes > 0);
  INFO("431 says that a field is too large (rfc6585, 5)");
  CHECK(status_of(line + "A: " + of('a', 14) + "\r\n\r\n", limits) == 431);
  CHECK(status_of(line + of('a', 17), limits) == 431);
}

TEST_CASE("13.2 as many fields as the limit, and one more", "[13.2]") {
  const request_limits limits{.fields_max = 3};
  const std::string line = "GET / HTTP/1.1\r\n";
  UNSCOPED_INFO("three fields, where three are allowed");
  CHECK(look_bytewise(line + "A:\r\nB:\r\nC:\r\n\r\n", limits).bytes > 0);
  UNSCOPED_INFO("four fields, where three are allowed (rfc6585, 5)");
  CHECK(status_of(line + "A:\r\nB:\r\nC:\r\nD:\r\n", limits) == 431);
  UNSCOPED_INFO("the empty line before the request line is no field");
  CHECK(look_bytewise("\r\n" + line + "A:\r\nB:\r\nC:\r\n\r\n", limits).bytes > 0);
}

TEST_CASE("13.2 a head at its limit, and one past it", "[13.2]") {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n";
  {
    INFO("a head of exactly its limit is read");
    CHECK(look_bytewise(head, {.head_bytes_max = head.size()}).bytes == head.size());
    CHECK(look_at_once(head + "more", {.head_bytes_max = head.size()}).bytes == head.size());
  }
  const request_limits too_small{.head_bytes_max = head.size() - 1};
  UNSCOPED_INFO("431 says that all fields together are too large (rfc6585, 5)");
  CHECK(status_of(head, too_small) == 431);
  UNSCOPED_INFO(
      "as many bytes as a head may have are there, and its end is not: a buffer of that size "
      "would be full, and the client would wait forever");
  CHECK(look_at_once(head.substr(0, head.size() - 1), too_small).refused.status == 431);
  UNSCOPED_INFO("one more byte may come: it is not full yet");
  CHECK(look_at_once(head.substr(0, head.size() - 2), too_small).refused.status == 0);
}

TEST_CASE("13.2 a full head is 431, whichever line it stops in", "[13.2]") {
  const request_limits limits{.head_bytes_max = 10};
  for (const std::string sent :
       {"GET /aaaaa", "GET /aaaaaaaa", "AAAAAAAAAA", "AAAAAAAAAAA /", "\r\nGET /aaa"}) {
    UNSCOPED_INFO("“" << printable(sent)
                      << "” in a head of 10 bytes: 431 says that the head is "
                         "full; 414 and 501 are for a line that is longer than a line may be");
    CHECK(status_of(sent, limits) == 431);
  }
  const request_limits short_lines{.request_line_bytes_max = 8, .head_bytes_max = 10};
  UNSCOPED_INFO(
      "the ninth byte makes the line too long (414), and the tenth fills the head (431): the ninth "
      "may come first, so ask whether the head is full only if the line is incomplete");
  CHECK(status_of("GET /aaaaa", short_lines) == 414);
}
