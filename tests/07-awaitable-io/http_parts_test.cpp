// SPDX-License-Identifier: MIT
// What http_client understands of an answer: tables, and every body cut at every place.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "body_decoder.hpp"
#include "http_get.hpp"
#include "http_grammar.hpp"
#include "resolve.hpp"
#include "response_head.hpp"

using Catch::Matchers::ContainsSubstring;
using uring::http::body_decoder;
using uring::http::body_end;
using uring::http::parse_response_head;
using uring::http::response_head;

namespace {

// The body in `received`, given in pieces; nothing after it may be lost, nothing before it kept.
struct decoded {
  std::string body;
  std::string rest;
  bool complete = false;
};

void feed(body_decoder& decoder, std::string_view piece, decoded& into) {
  while (!piece.empty() && !decoder.is_complete()) into.body += decoder.take(piece);
  into.rest += piece;
}

decoded decode(const response_head& head, std::string_view received, std::size_t cut) {
  body_decoder decoder{head};
  decoded result;
  feed(decoder, received.substr(0, cut), result);
  feed(decoder, received.substr(cut), result);
  result.complete = decoder.is_complete();
  return result;
}

constexpr response_head chunked_head() {
  response_head head;
  head.ends = body_end::chunked;
  return head;
}

}  // namespace

TEST_CASE("07 the elements of a list are what stands between the commas") {
  std::string_view list = " a,, b c\t,";
  CHECK(uring::http::next_of_list(list) == "a");
  CHECK(uring::http::next_of_list(list) == "b c");
  CHECK_FALSE(uring::http::next_of_list(list).has_value());
  CHECK(list.empty());
}

TEST_CASE("07 a number is digits, and fits") {
  CHECK(uring::http::read_number("0017", 10) == 17);
  CHECK(uring::http::read_number("fF", 16) == 255);
  CHECK(uring::http::read_number("18446744073709551615", 10) == UINT64_MAX);
  for (const std::string text : {"", "-1", "+1", " 1", "1 ", "1x", "18446744073709551616"}) {
    UNSCOPED_INFO("“" << text << "”");
    CHECK_FALSE(uring::http::read_number(text, 10).has_value());
  }
}

TEST_CASE("07 words are the same whatever their case, and bytes beyond ASCII are not") {
  CHECK(uring::http::same_word("Content-Length", "content-LENGTH"));
  CHECK_FALSE(uring::http::same_word("a", "ab"));
  CHECK_FALSE(uring::http::same_word("\xc3\x89", "\xc3\xa9"));
  UNSCOPED_INFO("@ and ` differ in the bit that makes a letter small, and are no letters");
  CHECK_FALSE(uring::http::same_word("@", "`"));
}

TEST_CASE("07 a chunk's line that a server pads with blanks is understood") {
  CHECK(decode(chunked_head(), "3  \r\nabc\r\n0 \r\n\r\n", 0).body == "abc");
  CHECK(decode(chunked_head(), "3;a \r\nabc\r\n0\r\n\r\n", 0).body == "abc");
}

TEST_CASE("07 the head ends with an empty line") {
  CHECK_FALSE(uring::http::head_bytes("").has_value());
  CHECK_FALSE(uring::http::head_bytes("HTTP/1.1 200 OK\r\n").has_value());
  CHECK_FALSE(uring::http::head_bytes("HTTP/1.1 200 OK\r\nA: b\r\n\r").has_value());
  CHECK(uring::http::head_bytes("HTTP/1.1 200 OK\r\n\r\nbody") == 19);
  CHECK(uring::http::head_bytes("HTTP/1.1 200 OK\n\nbody") == 17);
}

TEST_CASE("07 the head says how the body ends") {
  struct row {
    std::string fields;
    body_end ends;
    std::uint64_t bytes;
  };
  for (const row& each :
       {row{"", body_end::at_eof, 0},
        {"Content-Length: 17\r\n", body_end::counted, 17},
        {"content-length:\t 0 \r\n", body_end::counted, 0},
        {"Content-Length: 5\r\nContent-Length: 5\r\n", body_end::counted, 5},
        {"Transfer-Encoding: Chunked\r\n", body_end::chunked, 0},
        {"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", body_end::chunked, 0},
        {"X-Content-Length: 9\r\n", body_end::at_eof, 0}}) {
    const response_head head = parse_response_head("HTTP/1.1 200 OK\r\n" + each.fields + "\r\n");
    UNSCOPED_INFO(each.fields);
    CHECK(head.ends == each.ends);
    if (each.ends == body_end::counted) CHECK(head.body_bytes == each.bytes);
  }
  CHECK(parse_response_head("HTTP/1.1 204\r\nContent-Length: 5\r\n\r\n").ends == body_end::none);
  CHECK(parse_response_head("HTTP/1.0 404 Not here\r\n\r\n").reason == "Not here");
}

TEST_CASE("07 a head that makes no sense is refused") {
  for (const std::string head :
       {"SSH-2.0-OpenSSH\r\n\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1  200 OK\r\n\r\n", "\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding\t: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"}) {
    UNSCOPED_INFO(head);
    CHECK_THROWS_AS(parse_response_head(head), uring::http::bad_response);
  }
}

TEST_CASE("07 a server's words cannot control the terminal") {
  const uring::http::bad_response refused{"404 \x1b[31mred\x07\tand caf\xc3\xa9\x7f"};
  CHECK(refused.what() == std::string{"the server's answer: 404 ?[31mred??and caf\xc3\xa9?"});
}

TEST_CASE("07 a body is the same wherever it is cut") {
  struct row {
    response_head head;
    std::string received;
    std::string body;
  };
  response_head counted;
  counted.ends = body_end::counted;
  counted.body_bytes = 10;
  for (const row& each :
       {row{counted, "0123456789", "0123456789"},
        {chunked_head(), "5\r\nhello\r\n1\r\n,\r\nA;x=y\r\n 123456789\r\n0\r\n\r\n",
         "hello, 123456789"},
        {chunked_head(), "0\r\nTrailer: x\r\nAnother: y\r\n\r\n", ""},
        {chunked_head(), "3\nabc\n0\n\n", "abc"}}) {
    for (std::size_t cut = 0; cut <= each.received.size(); ++cut) {
      const decoded result = decode(each.head, each.received + "!", cut);
      UNSCOPED_INFO("cut before byte " << cut);
      CHECK(result.body == each.body);
      CHECK(result.complete);
      CHECK(result.rest == "!");
    }
    for (std::size_t bytes = 0; bytes < each.received.size(); ++bytes) {
      const decoded part = decode(each.head, each.received.substr(0, bytes), 0);
      UNSCOPED_INFO("only the first " << bytes << " bytes: is that taken for all of it?");
      CHECK_FALSE(part.complete);
    }
  }
}

TEST_CASE("07 a body without a length ends with the connection, the others do not") {
  body_decoder open_end{response_head{}};
  std::string_view received = "all of it";
  CHECK(open_end.take(received) == "all of it");
  CHECK_FALSE(open_end.is_complete());
  open_end.on_eof();
  CHECK(open_end.is_complete());
  body_decoder chunked{chunked_head()};
  chunked.on_eof();
  CHECK_FALSE(chunked.is_complete());
}

TEST_CASE("07 chunks that make no sense are refused") {
  for (const std::string received :
       {"x\r\n", "\r\n", "-1\r\n", "0x5\r\n", "10000000000000000\r\n", "1\r\nab\r\n"}) {
    UNSCOPED_INFO(received);
    CHECK_THROWS_AS(decode(chunked_head(), received, 0), uring::http::bad_response);
  }
  const std::string endless(body_decoder::line_bytes_max + 1, '1');
  CHECK_THROWS_WITH(decode(chunked_head(), endless, 7), ContainsSubstring("too long"));
  std::string trailer = "0\r\n";
  for (std::size_t i = 0; i <= body_decoder::trailer_lines_max; ++i) trailer += "a: b\r\n";
  CHECK_THROWS_WITH(decode(chunked_head(), trailer, 7), ContainsSubstring("does not end"));
}

TEST_CASE("07 a request names its host as the server knows it") {
  CHECK_THAT(uring::http::to_text({.host = "example.com", .port = 80, .path = "/a?b"}),
             ContainsSubstring("GET /a?b HTTP/1.1\r\nHost: example.com\r\n"));
  CHECK_THAT(uring::http::to_text({.host = "::1", .port = 8000, .path = "/"}),
             ContainsSubstring("Host: [::1]:8000\r\n"));
  for (const std::string path : {"", "index.html", "/a b", "/a\r\nX: y", "/\x7f"}) {
    UNSCOPED_INFO(path);
    CHECK_THROWS_AS(uring::http::to_text({.host = "h", .port = 80, .path = path}),
                    std::invalid_argument);
  }
  CHECK_THROWS_AS(uring::http::to_text({.host = "a\r\nb", .port = 80, .path = "/"}),
                  std::invalid_argument);
}

TEST_CASE("07 an unknown host name is an error in words") {
  CHECK(uring::resolve("127.0.0.1", 80).front().text == "127.0.0.1");
  CHECK_THROWS_WITH(uring::resolve("no-such-host.invalid", 80),
                    ContainsSubstring("resolve no-such-host.invalid: "));
}
