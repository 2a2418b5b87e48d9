// SPDX-License-Identifier: MIT
// Requests that are right, each whole, against an unreadable page, and cut at every place.
#include <catch2/catch_test_macros.hpp>
#include <string>

#include "sample_requests.hpp"
#include "sent_and_answered.hpp"

using course_test::check_rows;
using course_test::get_with;
using course_test::post_chunks;
using course_test::post_with;

TEST_CASE("13 requests that are right are understood, however they are cut", "[13]") {
  check_rows({
      {"9112, 2.1", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / of a | ."},
      {"9112, 2.1", "", "."},
      {"9112, 2.2", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / of a | ."},
      {"9110, 2.5", "GET / HTTP/1.9\r\nHost: a\r\n\r\n", "GET / of a | ."},
      {"9112, 9.3", "GET / HTTP/1.0\r\n\r\n", "GET / close | ."},
      {"9112, 9.3", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET / | ."},
      {"9112, 9.6", get_with("Connection: x, CLOSE\r\n"), "GET / of a close | ."},
      {"9110, 9.1", "get / HTTP/1.1\r\nHost: a\r\n\r\n", "get / of a | ."},
      {"9110, 9.3.2", "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD / of a | ."},
      {"9110, 16.1", "BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n", "BREW /pot of a | ."},
      {"9110, 5.5", get_with("A:\t b\tc \r\n"), "GET / of a | ."},
      {"9110, 5.5", get_with("A: caf\xc3\xa9\r\n"), "GET / of a | ."},
      {"9110, 5.6.1", get_with("Connection: ,,close,\r\n"), "GET / of a close | ."},
      {"9110, 7.2", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET / | ."},
      {"9110, 7.2", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET / of [::1]:80 | ."},
      {"9112, 6", get_with("Content_Length: 5\r\n"), "GET / of a | ."},
  });
}

TEST_CASE("13 all four forms of a target are understood", "[13]") {
  check_rows({
      {"9112, 3.2.1", "GET /a?b?c HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a?b?c of a | ."},
      {"9112, 3.2.1", "GET /a|{}^`\\\" HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a|{}^`\\\" of a | ."},
      {"9112, 3.2.1", "GET //b/c HTTP/1.1\r\nHost: a\r\n\r\n", "GET //b/c of a | ."},
      {"9112, 3.2.2", "GET http://b/c HTTP/1.1\r\nHost: a\r\n\r\n", "GET http://b/c of b | ."},
      {"9112, 3.2.2", "GET HTTP://b HTTP/1.1\r\nHost: a\r\n\r\n", "GET HTTP://b of b | ."},
      {"9112, 3.2.2", "GET http://b?c HTTP/1.1\r\nHost: a\r\n\r\n", "GET http://b?c of b | ."},
      {"9112, 3.2.3", "CONNECT b:443 HTTP/1.1\r\nHost: b\r\n\r\n", "CONNECT b:443 of b:443 | ."},
      {"9112, 3.2.4", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * of a | ."},
      {"9112, 3.2.4", "OPTIONS /a HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS /a of a | ."},
  });
}

TEST_CASE("13 bodies end where they end, however they are cut", "[13]") {
  check_rows({
      {"9112, 6.3", post_with("", ""), "POST / of a | ."},
      {"9112, 6.3", post_with("Content-Length: 0\r\n", ""), "POST / of a | ."},
      {"9112, 6.3", post_with("Content-Length: 5\r\n", "hello"), "POST / of a [hello] | ."},
      {"9112, 6.3", post_with("Content-Length: 5\r\n", "\r\n\r\n\r"),
       "POST / of a [\r\n\r\n\r] | ."},
      {"9110, 8.6", post_with("content-length:\t5 \r\n", "hello"), "POST / of a [hello] | ."},
      {"9110, 8.6", post_with("Content-Length: 2, 2\r\n", "hi"), "POST / of a [hi] | ."},
      {"9110, 9.3.1", get_with("Content-Length: 2\r\n") + "hi", "GET / of a [hi] | ."},
      {"9112, 6.3", "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi", "POST / close [hi] | ."},
      {"9112, 7.1", post_chunks("2\r\nhi\r\n0\r\n\r\n"), "POST / of a [hi] | ."},
      {"9112, 7.1", post_chunks("0\r\n\r\n"), "POST / of a | ."},
      {"9112, 7.1", post_chunks("2\r\n\r\n\r\n0\r\n\r\n"), "POST / of a [\r\n] | ."},
      {"9112, 7.1.1", post_chunks("2;a=\"b\"\r\nhi\r\n0;c\r\n\r\n"), "POST / of a [hi] | ."},
      {"9112, 7.1.2", post_chunks("2\r\nhi\r\n0\r\nA: b\r\nC: d\r\n\r\n"), "POST / of a [hi] | ."},
      {"9110, 6.5.1", post_chunks("2\r\nhi\r\n0\r\nContent-Length: 9\r\nHost: b\r\n\r\n"),
       "POST / of a [hi] | ."},
  });
}

TEST_CASE("13 requests follow each other without a gap", "[13]") {
  const std::string post = post_with("Content-Length: 5\r\n", "hello");
  const std::string get = "GET /b HTTP/1.1\r\nHost: b\r\n\r\n";
  check_rows({
      {"9112, 9.3.2", get + get, "GET /b of b | GET /b of b | ."},
      {"9112, 9.3.2", post + get, "POST / of a [hello] | GET /b of b | ."},
      {"9112, 9.3.2", post + post, "POST / of a [hello] | POST / of a [hello] | ."},
      {"9112, 9.3.2", post_chunks("2\r\nhi\r\n0\r\n\r\n") + get,
       "POST / of a [hi] | GET /b of b | ."},
      {"9112, 2.2", post + "\r\n" + get, "POST / of a [hello] | GET /b of b | ."},
      {"9112, 9.3.2", get + "GE", "GET /b of b | …"},
      {"9112, 9.3.2", get + "x\r\n\r\n" + get, "GET /b of b | 400"},
  });
}

TEST_CASE("13 a client that waits for 100 (Continue) is recognized", "[13]") {
  const std::string expect = "Expect: 100-continue\r\n";
  check_rows({
      {"9110, 10.1.1", post_with(expect + "Content-Length: 2\r\n", "hi"),
       "POST / of a 100? [hi] | ."},
      {"9110, 10.1.1", post_with(expect + "Content-Length: 2\r\n", ""), "POST / of a 100? …"},
      {"9110, 10.1.1", post_with("Expect: 100-Continue\r\nTransfer-Encoding: chunked\r\n", ""),
       "POST / of a 100? …"},
      {"9110, 10.1.1", get_with(expect), "GET / of a | ."},
      {"9110, 10.1.1", "POST / HTTP/1.0\r\nContent-Length: 2\r\n" + expect + "\r\nhi",
       "POST / close [hi] | ."},
      {"9110, 10.1.1", get_with("Expect: a-miracle\r\n"), "GET / of a 417! | ."},
      {"9110, 10.1.1", get_with("Expect: 100-continue, x\r\n"), "GET / of a 417! | ."},
      {"9110, 10.1.1", get_with("Expect: x\r\nExpect: 100-continue\r\n"), "GET / of a 417! | ."},
      {"9110, 10.1.1", post_with("Expect: 100-continue, x\r\nContent-Length: 2\r\n", ""),
       "POST / of a 417! …"},
  });
}

TEST_CASE("13 a request that is not complete is waited for", "[13]") {
  check_rows({
      {"9112, 8", "G", "…"},
      {"9112, 8", "\r\n", "…"},
      {"9112, 8", "GET / HTTP/1.1\r\n", "…"},
      {"9112, 8", "GET / HTTP/1.1\r\nHost: a\r\n\r", "…"},
      {"9112, 8", post_with("Content-Length: 5\r\n", "hell"), "POST / of a …"},
      {"9112, 8", post_chunks("5\r\nhello\r\n"), "POST / of a …"},
      {"9112, 8", post_chunks("5\r\nhello\r\n0\r\n"), "POST / of a …"},
      {"9112, 8", post_chunks("5\r\nhello\r\n0\r\nA: b\r\n"), "POST / of a …"},
  });
}

TEST_CASE("13 what real clients send is understood", "[13]") {
  check_rows({
      {"9110", std::string{uring::http::sample_of_load}, "GET /index.html of 127.0.0.1:9000 | ."},
      {"9110", std::string{uring::http::sample_of_browser},
       "GET /chapters/13-http-parser/?from=home of 127.0.0.1:9000 | ."},
      {"9110", std::string{uring::http::sample_of_chunks},
       "POST /form of 127.0.0.1:9000 [name=Nobody] | ."},
  });
}
