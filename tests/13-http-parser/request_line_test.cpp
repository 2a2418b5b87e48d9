// SPDX-License-Identifier: MIT
// Task 13.1: a request line and the fields behind it, in texts that are whole.
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <string_view>

#include "guarded_text.hpp"
#include "head_parser.hpp"
#include "parse_transcript.hpp"
#include "refusal.hpp"
#include "request_head.hpp"
#include "request_limits.hpp"
#include "shown_enums.hpp"

using course_test::guarded_text;
using uring::http::printable;
using uring::http::refusal;
using uring::http::request_head;
using uring::http::request_method;

namespace {

refusal read_line(std::string_view line, request_head& head) {
  const guarded_text text{line};
  const refusal refused = uring::http::read_request_line(text.view(), head);
  head.method_text = line.substr(0, head.method_text.size());  // the pages go
  return refused;
}

int status_of_line(std::string_view line) {
  request_head head;
  return read_line(line, head).status;
}

// With the bytes that its views are parts of.
struct kept_head : request_head {
  std::string bytes;
};

// The status of a head with these lines behind its request line, and 0 if it is not refused.
int status_of(std::string_view first_line, const std::string& lines, kept_head& head) {
  head.bytes = std::string{first_line} + "\r\n" + lines + "\r\n";
  return uring::http::parse_head(head.bytes, {}, head).status;
}

int status_of_fields(const std::string& lines) {
  kept_head head;
  return status_of("GET / HTTP/1.1", lines, head);
}

// What head.host is; the status if it is refused.
std::string host_of(std::string_view first_line, const std::string& lines) {
  request_head head;
  const std::string text = std::string{first_line} + "\r\n" + lines + "\r\n";
  const refusal refused = uring::http::parse_head(text, {}, head);
  return refused ? std::to_string(refused.status) : std::string{head.host};
}

}  // namespace

TEST_CASE("13.1 a request line has a method, a target and a version", "[13.1]") {
  const std::string line = "GET /a/b?c=d HTTP/1.1";
  request_head head;
  head.minor = 7;
  CHECK_FALSE(uring::http::read_request_line(line, head));
  UNSCOPED_INFO("the method is what stands before the first blank");
  CHECK(head.method_text == "GET");
  UNSCOPED_INFO("the target is what stands between the first blank and the last one");
  CHECK(head.target.text == "/a/b?c=d");
  UNSCOPED_INFO("the version is HTTP/1.1, so its minor number is 1");
  CHECK(head.minor == 1);
  UNSCOPED_INFO("no bytes are copied: the views are parts of the line");
  CHECK(head.target.text.data() == line.data() + 4);
}

TEST_CASE("13.1 a target with a blank in it is not cut there", "[13.1]") {
  kept_head head;
  {
    INFO("the target is what stands between the first blank and the last one");
    CHECK(uring::http::read_request_line("GET /a b HTTP/1.1", head).status == 0);
    CHECK(head.target.text == "/a b");
    CHECK(uring::http::read_request_line("GET  / HTTP/1.1", head).status == 0);
    CHECK(head.target.text == " /");
  }
  UNSCOPED_INFO("read_target() refuses it then: a URI has no blank");
  CHECK(status_of("GET /a b HTTP/1.1", "Host: a\r\n", head) == 400);
}

TEST_CASE("13.1 any token is a method", "[13.1]") {
  for (const std::string method : {"GET", "get", "M-SEARCH", "!#$%&'*+-.^_`|~", "X"}) {
    const std::string line = method + " / HTTP/1.1";
    request_head head;
    INFO(method << ": what the server does not know it answers with 501, later");
    CHECK(uring::http::read_request_line(line, head).status == 0);
    CHECK(head.method_text == method);
  }
  UNSCOPED_INFO("GET is a method that we know");
  CHECK(uring::http::method_of("GET") == request_method::get);
  UNSCOPED_INFO("the case of a method counts (rfc9110, 9.1)");
  CHECK(uring::http::method_of("Get") == request_method::other);
}

TEST_CASE("13.1 a line that is no request line is a bad request", "[13.1]") {
  for (const std::string_view line : {"",
                                      " ",
                                      "  ",
                                      "GET",
                                      "GET /",
                                      "GET / ",
                                      " GET / HTTP/1.1",
                                      "GET /HTTP/1.1",
                                      "GET / HTTP/1.1 ",
                                      "GET\t/\tHTTP/1.1",
                                      "GET / http/1.1",
                                      "GET / HTTP/",
                                      "GET / HTTP/1",
                                      "GET / HTTP/1.",
                                      "GET / HTTP/1.10",
                                      "GET / HTTP/11.1",
                                      "GET / HTTP/1,1",
                                      "GET / HTTP/a.1",
                                      "GET / HTTP/1.a",
                                      "GET / HTTP /1.1",
                                      "GET / XTTP/1.1",
                                      "G{T / HTTP/1.1",
                                      "G\xc3\x89T / HTTP/1.1",
                                      "/ HTTP/1.1",
                                      "SSH-2.0-OpenSSH_9.2"}) {
    UNSCOPED_INFO("this is no request line: “" << printable(line) << "”");
    CHECK(status_of_line(line) == 400);
  }
}

TEST_CASE("13.1 another major version is not served, a later minor one is", "[13.1]") {
  struct row {
    std::string version;
    int status;
    int minor;
  };
  for (const row& each :
       {row{"HTTP/1.0", 0, 0}, row{"HTTP/1.1", 0, 1}, row{"HTTP/1.2", 0, 1}, row{"HTTP/1.9", 0, 1},
        row{"HTTP/0.9", 505, -1}, row{"HTTP/2.0", 505, -1}, row{"HTTP/9.9", 505, -1}}) {
    request_head head;
    UNSCOPED_INFO(each.version << ": 505 says that its major version is not ours (rfc9110, 2.5)");
    CHECK(uring::http::read_request_line("GET / " + each.version, head).status == each.status);
    UNSCOPED_INFO(each.version << ": HTTP/1.2 and later are answered as HTTP/1.1");
    if (each.status == 0) CHECK(head.minor == each.minor);
  }
}

TEST_CASE("13.1 nothing is read behind the line", "[13.1]") {
  for (const std::string_view line :
       {"", "G", "GET ", "GET /", "GET / HTTP/1.", "GET / HTTP/1.1"}) {
    const guarded_text text{line};
    request_head head;
    UNSCOPED_INFO("only “" << line << "” is there, and an unreadable page behind it");
    CHECK(uring::http::read_request_line(text.view(), head).status ==
          (line.size() == 14 ? 0 : 400));
  }
}

TEST_CASE("13.1 a request of HTTP/1.1 has one Host", "[13.1]") {
  UNSCOPED_INFO("no Host in HTTP/1.1 is refused with 400 (rfc9112, 3.2)");
  CHECK(host_of("GET / HTTP/1.1", "") == "400");
  UNSCOPED_INFO("HTTP/1.0 does not know Host, so it may be missing");
  CHECK(host_of("GET / HTTP/1.0", "") == "");
  {
    INFO("two Host fields are refused, also if they say the same");
    CHECK(host_of("GET / HTTP/1.1", "Host: a\r\nHost: b\r\n") == "400");
    CHECK(host_of("GET / HTTP/1.1", "Host: a\r\nhost: a\r\n") == "400");
  }
  UNSCOPED_INFO(
      "two Host fields are refused in HTTP/1.0, too: “any request message”, says the RFC");
  CHECK(host_of("GET / HTTP/1.0", "Host: a\r\nHost: a\r\n") == "400");
  UNSCOPED_INFO("a Host that is none is refused in HTTP/1.0, too: “any request message”");
  CHECK(host_of("GET / HTTP/1.0", "Host: a b/../x\r\n") == "400");
  UNSCOPED_INFO("the host keeps its port: head.host is the whole authority, “name:port”");
  CHECK(host_of("GET / HTTP/1.1", "Host: example.com:8080\r\n") == "example.com:8080");
  UNSCOPED_INFO("the name of a field has any case, and its value no blanks around it");
  CHECK(host_of("GET / HTTP/1.1", "HOST:\texample.com \r\n") == "example.com");
}

TEST_CASE("13.1 an empty Host is a Host", "[13.1]") {
  UNSCOPED_INFO("a target without an authority has an empty Host (rfc9110, 7.2)");
  CHECK(host_of("GET / HTTP/1.1", "Host:\r\n") == "");
}

TEST_CASE("13.1 a Host that is none is a bad request", "[13.1]") {
  for (const std::string value :
       {"a b",      "a/b",  "user@a", "a:b",    "a:65536", "a:-1",       "a:1:2", ":80",
        "http://a", "[::1", "[]",     "[::1]x", "[g::1]",  "a?b",        "a#b",   "a%",
        "a%4",      "a%zz", "a, b",   "\"a\"",  "a\\b",    "caf\xc3\xa9"}) {
    UNSCOPED_INFO("Host: " << printable(value) << " is no host with a port (rfc9112, 3.2)");
    CHECK(host_of("GET / HTTP/1.1", "Host: " + value + "\r\n") == "400");
  }
  for (const std::string value : {"a", "a.b-c", "A", "127.0.0.1", "127.0.0.1:80", "[::1]",
                                  "[::1]:8080", "a:", "a:65535", "a%41", "x_y"}) {
    UNSCOPED_INFO("Host: " << value << " is right, and head.host is all of it");
    CHECK(host_of("GET / HTTP/1.1", "Host: " + value + "\r\n") == value);
  }
}

TEST_CASE("13.1 the target's authority comes before Host", "[13.1]") {
  {
    INFO("rfc9112, 3.2.2: with an absolute target the server has to ignore Host");
    CHECK(host_of("GET http://b:81/x HTTP/1.1", "Host: a\r\n") == "b:81");
    CHECK(host_of("GET http://b HTTP/1.0", "") == "b");
  }
  UNSCOPED_INFO("rfc9112, 3.2.3: the target of CONNECT is an authority, and comes before Host");
  CHECK(host_of("CONNECT b:443 HTTP/1.1", "Host: a\r\n") == "b:443");
  INFO("Host has to be there and to be right all the same");
  CHECK(host_of("GET http://b/ HTTP/1.1", "") == "400");
  CHECK(host_of("GET http://b/ HTTP/1.1", "Host: a b\r\n") == "400");
}

TEST_CASE("13.1 a field is a token, a colon, and a value without the blanks around it", "[13.1]") {
  kept_head head;
  REQUIRE(status_of("GET / HTTP/1.1",
                    "Host: a\r\nA:1\r\nB:  2\t \r\nC:\r\nD: x: y \" z\r\nE: caf\xc3\xa9\r\n",
                    head) == 0);
  INFO("the head has Host, A, B, C, D and E, and their names have any case");
  CHECK(head.fields.all().size() == 6);
  CHECK(head.fields.find("a") == "1");
  CHECK(head.fields.find("B") == "2");
  CHECK(head.fields.find("c") == "");
  CHECK(head.fields.find("D") == "x: y \" z");
  CHECK(head.fields.find("e") == "caf\xc3\xa9");
  CHECK_FALSE(head.fields.find("F").has_value());
}

TEST_CASE("13.1 a line that is no field is a bad request", "[13.1]") {
  for (const std::string line :
       {"no colon", ": no name", "Blank : before the colon", "Tab\t: before the colon",
        " begins with a blank: 1", "\tfolded", "[x]: 1", "caf\xc3\xa9: 1", "a b: 1"}) {
    UNSCOPED_INFO("“" << printable(line) << "” (rfc9112, 5.1 and 5.2)");
    CHECK(status_of_fields("Host: a\r\n" + line + "\r\n") == 400);
  }
}

TEST_CASE("13.1 a connection is kept alive as the version and Connection say", "[13.1]") {
  struct row {
    std::string version;
    std::string lines;
    bool keep_alive;
  };
  for (const row& each :
       {row{"HTTP/1.1", "", true}, row{"HTTP/1.1", "Connection: close\r\n", false},
        row{"HTTP/1.1", "Connection: Close\r\n", false},
        row{"HTTP/1.1", "Connection: Upgrade, close\r\n", false},
        row{"HTTP/1.1", "Connection: keep-alive\r\nConnection: close\r\n", false},
        row{"HTTP/1.1", "Connection: closer\r\n", true}, row{"HTTP/1.0", "", false},
        row{"HTTP/1.0", "Connection: Keep-Alive\r\n", true},
        row{"HTTP/1.0", "Connection: keep-alive, close\r\n", false}}) {
    kept_head head;
    UNSCOPED_INFO(each.version << " with " << printable(each.lines) << " (rfc9112, 9.3)");
    REQUIRE(status_of("GET / " + each.version, "Host: a\r\n" + each.lines, head) == 0);
    CHECK(head.keep_alive == each.keep_alive);
  }
}

TEST_CASE("13.1 a head that was read before leaves nothing behind", "[13.1]") {
  kept_head head;
  REQUIRE(status_of("GET http://b/x?y HTTP/1.0", "Connection: keep-alive\r\nA: 1\r\n", head) == 0);
  REQUIRE(status_of("OPTIONS * HTTP/1.1", "Host: a\r\n", head) == 0);
  {
    INFO("the second head is OPTIONS *, of a: what else it says is left from the first one");
    CHECK(head.host == "a");
    CHECK(head.method == request_method::options);
    CHECK(head.target.form == uring::http::target_form::asterisk);
    CHECK(head.target.path.empty());
    CHECK_FALSE(head.target.has_query);
    CHECK(head.minor == 1);
    CHECK(head.fields.all().size() == 1);
  }
  REQUIRE(status_of("GET / HTTP/1.0", "", head) == 0);
  UNSCOPED_INFO("the third head has no host: this one is left from the second, now freed");
  CHECK(head.host.empty());
}
