// SPDX-License-Identifier: MIT
// Requests that are refused, each whole, against an unreadable page, and cut at every place. Behind
// many of them stands a request that somebody wants to smuggle in: nothing of it may be understood.
#include <catch2/catch_test_macros.hpp>
#include <string>

#include "request_limits.hpp"
#include "sent_and_answered.hpp"

using course_test::check_rows;
using course_test::get_with;
using course_test::post_chunks;
using course_test::post_with;

namespace {

const std::string smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

}  // namespace

TEST_CASE("13 a request line that is wrong is refused, however it is cut", "[13]") {
  check_rows({
      {"9112, 3", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "400"},
      {"9112, 3", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 3", "GET / /b HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 3", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 3", "GET HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 3", "GET /\r\n\r\n", "400"},
      {"9112, 3", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 2.2", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 2.2", " \r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 2.3", "GET / HTTP/1.1x\r\nHost: a\r\n\r\n", "400"},
      {"9112, 2.3", "GET / HTTP/1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 2.3", "GET / HTTP/01.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 2.3", "GET / hTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9110, 15.6.6", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505"},
      {"9113, 3.4", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"},
  });
}

TEST_CASE("13 a target that is wrong is refused, however it is cut", "[13]") {
  check_rows({
      {"9112, 3.2", "GET a HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 3.2", "GET ?a HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 3.2", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 3.2", "GET /caf\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 3.2", "GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 3.2.2", "GET ftp://b/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 3.2.2", "GET http HTTP/1.1\r\nHost: a\r\n\r\n", "400"},  // threw, says the fuzzer
      {"9112, 3.2.2", "GET https HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 3.2.2", "GET http:/b HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9110, 4.2.1", "GET http:// HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9110, 4.2.1", "GET http:///b HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9110, 4.2.4", "GET http://user@b/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9110, 7.4", "GET https://b/ HTTP/1.1\r\nHost: a\r\n\r\n", "421"},
      {"9112, 3.2.3", "GET b:443 HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9110, 9.3.6", "CONNECT b HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9110, 9.3.6", "CONNECT b: HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9110, 9.3.6", "CONNECT b:x HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9110, 9.3.6", "CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 3.2.4", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"9112, 3.2.4", "OPTIONS *a HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
  });
}

TEST_CASE("13 lines that two readers would end at two places are refused", "[13]") {
  check_rows({
      {"9112, 2.2", "GET / HTTP/1.1\nHost: a\n\n", "400"},
      {"9112, 2.2", "GET / HTTP/1.1\r\nHost: a\n\r\n", "400"},
      {"9112, 2.2", "GET / HTTP/1.1\r\nHost: a\r\n\n", "400"},
      {"9112, 2.2", "GET / HTTP/1.1\rHost: a\r\r", "400"},
      {"9112, 2.2", get_with("A: b\rContent-Length: 9\r\n"), "400"},
      {"9112, 2.2", get_with("A: b\nContent-Length: 9\r\n"), "400"},
      {"9112, 5.2", get_with("A: b\r\n c\r\n"), "400"},
      {"9112, 5.2", get_with("Transfer-Encoding:\r\n chunked\r\n"), "400"},
      {"9112, 2.2", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", "400"},
      {"9110, 5.5", get_with(std::string{"A: b\0c\r\n", 8}), "400"},
      {"9110, 5.5", get_with("A: \x01\r\n"), "400"},
      {"9110, 5.5", get_with("A: \x7f\r\n"), "400"},
      {"9110, 5.5", get_with("Transfer-Encoding: \vchunked\r\n"), "400"},
      {"9112, 2.2", "\n" + smuggled, "400"},
      {"8446, 5.1", "\x16\x03\x01\x02", "400"},
  });
}

TEST_CASE("13 fields that are wrong are refused, however they are cut", "[13]") {
  check_rows({
      {"9112, 5.1", get_with("A : b\r\n"), "400"},
      {"9112, 5.1", get_with("Transfer-Encoding : chunked\r\n"), "400"},
      {"9112, 5", get_with("A\r\n"), "400"},
      {"9112, 5", get_with(": b\r\n"), "400"},
      {"9110, 5.1", get_with("caf\xc3\xa9: b\r\n"), "400"},
      {"9110, 5.1", get_with("A[]: b\r\n"), "400"},
      {"9112, 3.2", "GET / HTTP/1.1\r\n\r\n", "400"},
      {"9112, 3.2", get_with("Host: a\r\n"), "400"},
      {"9112, 3.2", get_with("host: b\r\n"), "400"},
      {"9112, 3.2", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", "400"},
      {"9112, 3.2", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "400"},
      {"9112, 3.2", "GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", "400"},
  });
}

TEST_CASE("13 nothing is smuggled in behind a body", "[13]") {
  const std::string length = "Content-Length: 5\r\n";
  const std::string coding = "Transfer-Encoding: chunked\r\n";
  check_rows({
      {"9112, 6.1", post_with(length + coding, "0\r\n\r\n" + smuggled), "400"},
      {"9112, 6.1", post_with(coding + length, "0\r\n\r\n" + smuggled), "400"},
      {"9112, 6.3", post_with(length + "Content-Length: 6\r\n", "hello" + smuggled), "400"},
      {"9112, 6.3", post_with("Content-Length: 5, 6\r\n", "hello" + smuggled), "400"},
      {"9112, 6.3", post_with("Content-Length: -5\r\n", smuggled), "400"},
      {"9112, 6.3", post_with("Content-Length: +5\r\n", "hello" + smuggled), "400"},
      {"9112, 6.3", post_with("Content-Length: 5 5\r\n", "hello" + smuggled), "400"},
      {"9110, 8.6", post_with("Content-Length: 18446744073709551621\r\n", "hello"), "400"},
      {"9112, 6.3", post_with("Transfer-Encoding: chunked, identity\r\n", smuggled), "400"},
      {"9112, 6.3", post_with("Transfer-Encoding: xchunked\r\n", smuggled), "400"},
      {"9112, 7", post_with("Transfer-Encoding: chunked;a=b\r\n", "0\r\n\r\n"), "400"},
      {"9112, 6.1", post_with(coding + coding, "0\r\n\r\n" + smuggled), "400"},
      {"9112, 6.1", post_with("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), "501"},
      {"9112, 6.1", "POST / HTTP/1.0\r\n" + coding + "\r\n0\r\n\r\n" + smuggled, "400"},
      {"9112, 7.1", post_chunks("5\r\nhello0\r\n\r\n" + smuggled), "POST / of a 400"},
      {"9112, 7.1", post_chunks("5\r\nhello!\r\n0\r\n\r\n"), "POST / of a 400"},
      {"9112, 7.1", post_chunks("0x5\r\nhello\r\n0\r\n\r\n"), "POST / of a 400"},
      {"9112, 7.1", post_chunks("5 \r\nhello\r\n0\r\n\r\n"), "POST / of a 400"},
      {"9112, 7.1", post_chunks("-1\r\nhello\r\n"), "POST / of a 400"},
      {"9112, 7.1", post_chunks("fffffffffffffffff\r\nx"), "POST / of a 400"},
      {"9112, 7.1", post_chunks("5\nhello\r\n0\r\n\r\n"), "POST / of a 400"},
      {"9112, 7.1", post_chunks("5\r\nhello\n0\r\n\r\n"), "POST / of a 400"},
      {"9112, 7.1.1", post_chunks("5;a \r\nhello\r\n0\r\n\r\n"), "POST / of a 400"},
      {"9112, 7.1.1", post_chunks("5;\r\nhello\r\n0\r\n\r\n"), "POST / of a 400"},
      {"9112, 7.1.1", post_chunks("5;a\nb\r\nhello\r\n0\r\n\r\n"), "POST / of a 400"},
      {"9112, 7.1.2", post_chunks("0\r\nA : b\r\n\r\n" + smuggled), "POST / of a 400"},
  });
}

TEST_CASE("13 what is larger than a limit is refused, however it is cut", "[13]") {
  const uring::http::request_limits limits{.request_line_bytes_max = 24,
                                           .field_line_bytes_max = 26,
                                           .fields_max = 3,
                                           .head_bytes_max = 83,
                                           .body_bytes_max = 4,
                                           .chunk_line_bytes_max = 6,
                                           .chunk_extension_bytes_max = 3,
                                           .trailer_bytes_max = 8};
  const std::string most = "A: " + std::string(23, 'a') + "\r\n";  // as long as a field may be
  check_rows(
      {
          {"9112, 3", "GET /" + std::string(10, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET /aaaaaaaaaa of a | ."},
          {"9112, 3", "GET /" + std::string(11, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", "414"},
          {"9112, 3", std::string(25, 'A') + " / HTTP/1.1\r\n\r\n", "501"},
          {"9110, 5.4", get_with(most), "GET / of a | ."},
          {"9110, 5.4", get_with("A" + most), "431"},
          {"6585, 5", get_with("A: b\r\nA: b\r\n"), "GET / of a | ."},
          {"6585, 5", get_with("A: b\r\nA: b\r\nA: b\r\n"), "431"},
          {"6585, 5", get_with(most + most) + "mo", "GET / of a | …"},
          {"6585, 5", "GET /b HTTP/1.1\r\nHost: a\r\n" + most + most + "\r\n", "431"},
          {"9110, 15.5.14", post_with("Content-Length: 4\r\n", "1234"), "POST / of a [1234] | ."},
          {"9110, 15.5.14", post_with("Content-Length: 5\r\n", "12345"), "413"},
          {"9110, 15.5.14", post_chunks("4\r\n1234\r\n0\r\n\r\n"), "POST / of a [1234] | ."},
          {"9110, 15.5.14", post_chunks("4\r\n1234\r\n1\r\n5\r\n"), "POST / of a 413"},
          {"9112, 7.1.1", post_chunks("1;ab\r\n1\r\n0\r\n\r\n"), "POST / of a [1] | ."},
          {"9112, 7.1.1", post_chunks("1;ab\r\n1\r\n1;a\r\n"), "POST / of a 400"},
          {"9112, 7.1.1", post_chunks("1;abcde\r\n1"), "POST / of a 400"},
          {"6585, 5", post_chunks("0\r\nA: b\r\nC: d\r\n\r\n"), "POST / of a | ."},
          {"6585, 5", post_chunks("0\r\nA: b\r\nC: de\r\n\r\n"), "POST / of a 431"},
      },
      limits);
}
