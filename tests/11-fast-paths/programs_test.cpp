// SPDX-License-Identifier: MIT
// The chapter's small programs print what the page says, on this kernel.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "bytes.hpp"
#include "child_process.hpp"
#include "test_folder.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using course_test::exited;
using course_test::finished_program;
using course_test::test_folder;

namespace {

finished_program run(const std::string& name, const std::vector<std::string>& arguments) {
  return course_test::run_program(course_test::program(name), arguments);
}

// The text behind a line's title.
std::string answer_to(const std::string& text, const std::string& title) {
  const std::size_t at = text.find(title + " ");
  REQUIRE(at != std::string::npos);
  const std::string rest = text.substr(at + title.size(), text.find('\n', at) - at - title.size());
  const std::size_t begin = rest.find_first_not_of(' ');
  return begin == std::string::npos ? "" : rest.substr(begin);
}

}  // namespace

TEST_CASE("11 answers shows how linked requests end", "[11]") {
  const std::string text = run("11-answers", {"--about", "links"}).stdout_text;
  CHECK(answer_to(text, "10 of 10 bytes") == "1: 10   2: 10");
  CHECK(answer_to(text, "100 of 10 bytes") == "1: 10   2: ECANCELED");
  CHECK(answer_to(text, "100 of 10 bytes, hard link") == "1: 10   2: 100");
  CHECK(answer_to(text, "a recv that waits, and a nop") == "nothing");
  CHECK(answer_to(text, "the same, submitted one by one") == "2: 0");
}

TEST_CASE("11 answers shows a chain that a full queue does not cut", "[11]") {
  const finished_program ended = run("11-answers", {"--about", "chain"});
  CHECK(ended.status == exited(0));
  CHECK_THAT(ended.stdout_text,
             ContainsSubstring("3 of 4 places taken: received 10, wrote 10: 0123456789"));
}

TEST_CASE("11 answers shows what a slot does", "[11]") {
  const std::string text = run("11-answers", {"--about", "slots"}).stdout_text;
  CHECK(answer_to(text, "slot 0, with a file") == "1: 10");
  CHECK(answer_to(text, "slot 1, empty") == "1: EBADF");
  CHECK(answer_to(text, "slot 0, descriptor closed") == "1: 10");
  CHECK(answer_to(text, "slot 0, cleared") == "1: EBADF");
}

TEST_CASE("11 answers shows both completions of a zero-copy send", "[11]") {
  const std::string text = run("11-answers", {"--about", "zero-copy"}).stdout_text;
  CHECK(answer_to(text, "5 bytes") == "1: 5 F_MORE   1: 0 F_NOTIF");
  CHECK_THAT(answer_to(text, "5 bytes to no socket"), StartsWith("1: EBADF"));
  CHECK_THAT(answer_to(text, "5 bytes, linked to what fails"),
             StartsWith("1: EBADF   2: ECANCELED"));
  const std::string unread = answer_to(text, "16 MiB, and the peer does not read");
  UNSCOPED_INFO("no notification before the peer reads");
  CHECK_THAT(unread, ContainsSubstring("F_MORE") && !ContainsSubstring("F_NOTIF"));
  CHECK(answer_to(text, "the connection is reset") == "1: 0 F_NOTIF");
  CHECK_THAT(text, ContainsSubstring("completions of a send: 2"));
}

TEST_CASE("11 copies takes the time of every way", "[11]") {
  for (const char* const by : {"calls", "requests", "links", "one-answer"}) {
    const finished_program ended = run("11-copies", {"--by", by, "--count", "1001"});
    CHECK(ended.status == exited(0));
    CHECK_THAT(ended.stdout_text, StartsWith("ns per block: "));
  }
  const finished_program small =
      run("11-copies", {"--by", "one-answer", "--count", "100", "--sq", "16"});
  CHECK(small.status == exited(0));
}

// What the page shows before it explains it: green as long as the defect shows.
TEST_CASE("11 first-copy makes a wrong copy, and says nothing", "[11]") {
  const test_folder folder;
  const std::string content = course_test::noise(16 << 20);
  const std::string from = folder.add("a", content);
  bool is_wrong = false;
  for (int chance = 0; chance < 5 && !is_wrong; ++chance) {
    const finished_program ended = run("11-first-copy", {from, folder.path("b")});
    REQUIRE(ended.status == exited(0));
    REQUIRE(folder.content("b").size() == content.size());
    is_wrong = folder.content("b") != content;
  }
  CHECK(is_wrong);
}
