// SPDX-License-Identifier: MIT
// The programs of the chapter: what the page shows, and what a wrong use is told.
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "child_process.hpp"

using Catch::Matchers::ContainsSubstring;
using course_test::exited;

namespace {

std::string output_of(const std::string& program, const std::vector<std::string>& arguments) {
  const auto run = course_test::run_program(course_test::program(program), arguments);
  INFO(run.stderr_text);
  REQUIRE(run.status == exited(0));
  return run.stdout_text;
}

// A file that is gone with this object.
class sent_file {
 public:
  explicit sent_file(std::string_view bytes)
      : name_{(std::filesystem::temp_directory_path() /
               ("ring-by-ring-13-" + std::to_string(::getpid())))
                  .string()} {
    std::ofstream{name_, std::ios::binary} << bytes;
  }
  sent_file(sent_file&&) = delete;
  ~sent_file() { std::remove(name_.c_str()); }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
};

constexpr const char* post =
    "POST /a?b HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\n\r\nhello";

}  // namespace

TEST_CASE("13 first-parser gives three answers to the same bytes", "[13]") {
  const std::string said = output_of("13-first-parser", {});
  UNSCOPED_INFO("cut after the first request, it sees both");
  CHECK_THAT(said, ContainsSubstring("cut after the first request\n"
                                     "  a request: POST /one HTTP/1.1\n"
                                     "  a request: GET /two HTTP/1.1\n"));
  CHECK_THAT(said, ContainsSubstring("a request: helloGET /two HTTP/1.1\n"));
  CHECK_THAT(said, ContainsSubstring("all of it in one piece\n"
                                     "  a request: POST /one HTTP/1.1\n"
                                     "cut"));
}

TEST_CASE("13 parse says what is in a file, the same in pieces of any size", "[13]") {
  const sent_file file{post};
  const std::string whole = output_of("13-parse", {file.name()});
  CHECK(whole ==
        "POST /a?b HTTP/1.1\n"
        "  target: origin, path /a, query “b”\n"
        "  host: example.com\n"
        "  body: 5 bytes\n"
        "  then: keep alive\n"
        "  “Host”: “example.com”\n"
        "  “Content-Length”: “5”\n"
        "data: 5 bytes “hello”\n"
        "end\n"
        "nothing is left\n");
  for (const std::string split : {"1", "2", "7", "64"}) {
    CHECK(output_of("13-parse", {file.name(), "--split", split}) == whole);
  }
}

TEST_CASE("13 parse says why a request is refused", "[13]") {
  const sent_file file{"GET / HTTP/1.1\nHost: a\n\n"};
  CHECK(output_of("13-parse", {file.name()}) == "refused: 400, a control byte\n");
}

TEST_CASE("13 parse says that there is no such file", "[13]") {
  const auto run = course_test::run_program(course_test::program("13-parse"), {"no-such-file"});
  CHECK(run.status == exited(1));
  CHECK_THAT(run.stderr_text, ContainsSubstring("no-such-file cannot be opened"));
}

TEST_CASE("13 pieces shows each piece of the parser alone", "[13]") {
  CHECK(output_of("13-pieces", {"--line", "GET /a HTTP/1.0"}) ==
        "method: GET\ntarget: /a\nversion: 1.0\n");
  CHECK_THAT(output_of("13-pieces", {"--line", "GET /a HTTP/2.0"}),
             ContainsSubstring("refused: 505, "));
  UNSCOPED_INFO("read_target() is asked, too: a target has no blank, and is not empty");
  CHECK_THAT(output_of("13-pieces", {"--line", "GET /a b HTTP/1.1"}),
             ContainsSubstring("refused: 400, "));
  CHECK_THAT(output_of("13-pieces", {"--line", ""}), ContainsSubstring("nothing to show: "));
  CHECK(output_of("13-pieces", {"--path", "/a/../b%20c"}) == "path: /b c\n");
  CHECK_THAT(output_of("13-pieces", {"--path", "/.."}), ContainsSubstring("refused: 400, "));
  CHECK(output_of("13-pieces", {"--path", "a"}) == "a path begins with a slash\n");
  CHECK(output_of("13-pieces", {"--answer", "301", "--location", "/b"}) ==
        "HTTP/1.1 301 Moved Permanently\r\nContent-Length: 6\r\nLocation: /b\r\n\r\nhello\n");
  CHECK_THAT(output_of("13-pieces", {"--answer", "301", "--location", "/b\r\nSet-Cookie: c"}),
             ContainsSubstring("not sent"));
}

TEST_CASE("13 costs counts no allocation", "[13]") {
  CHECK_THAT(output_of("13-costs", {}), ContainsSubstring("allocations per request: 0\n"));
}

TEST_CASE("13 requests times itself, and its peer if that is installed", "[13]") {
  for (const std::string sample : {"load", "browser", "chunks"}) {
    const std::string said =
        output_of("13-requests", {"--sample", sample, "--count", "10", "--piece", "1"});
    CHECK_THAT(said, ContainsSubstring("ns per request: "));
    const auto peer = course_test::run_program(
        course_test::program("13-requests"),
        {"--by", "http_parser", "--sample", sample, "--count", "10", "--piece", "1"});
    if (peer.status == exited(0)) {
      CHECK_THAT(peer.stdout_text, ContainsSubstring("ns per request: "));
    } else {
      CHECK_THAT(peer.stderr_text, ContainsSubstring("apt install libhttp-parser-dev"));
    }
  }
}
