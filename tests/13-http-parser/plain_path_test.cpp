// SPDX-License-Identifier: MIT
// Task 13.4: from the path of a target to a name in a tree.
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "parse_transcript.hpp"
#include "plain_path.hpp"

using uring::http::plain_path;
using uring::http::printable;

namespace {

// What became of it; the status if it was refused. The buffer is exactly large enough.
std::string plain(std::string_view raw) {
  std::vector<char> room(raw.size());
  const plain_path made = uring::http::make_plain(raw, room);
  return made.refused ? std::to_string(made.refused.status) : printable(made.path);
}

}  // namespace

TEST_CASE("13.4 a path without anything to do stays as it is", "[13.4]") {
  for (const std::string path : {"/", "/a", "/a/", "/a/b.html", "/a/b/c/", "/~a_b-c", "/a\\b"}) {
    UNSCOPED_INFO("a name stays, with the slash behind it, if there is one");
    CHECK(plain(path) == path);
  }
  UNSCOPED_INFO("a plus is a plus in a path: it stands for a blank only in a form's query");
  CHECK(plain("/a+b") == "/a+b");
  for (const std::string path : {"/.a", "/a.", "/...", "/..a", "/a..", "/.a/", "/a\\..\\b"}) {
    UNSCOPED_INFO("only “.” and “..” alone are special: other names may have dots");
    CHECK(plain(path) == path);
  }
}

TEST_CASE("13.4 percent and two digits are a byte", "[13.4]") {
  {
    INFO("%41 is one byte, A, and what follows it is the next one");
    CHECK(plain("/%41") == "/A");
    CHECK(plain("/a%20b") == "/a b");
    CHECK(plain("/%7e%2B") == "/~+");
  }
  UNSCOPED_INFO("only control bytes are refused, and é is none: a char of it is less than 0");
  CHECK(plain("/caf%c3%A9") == "/caf\\xc3\\xa9");
  UNSCOPED_INFO("a backslash is a byte of a name like any other: only the slash is no part of one");
  CHECK(plain("/a%5cb") == "/a\\b");
  UNSCOPED_INFO("the last byte of the path is a part of it, too");
  CHECK(plain("/a%5a") == "/aZ");
}

TEST_CASE("13.4 a percent without two digits is a bad request", "[13.4]") {
  for (const std::string path : {"/%", "/%4", "/a%zz", "/%4g", "/%g4", "/%%41", "/%4/1", "/%-1"}) {
    UNSCOPED_INFO(path << " has a % without two hexadecimal digits");
    CHECK(plain(path) == "400");
  }
}

TEST_CASE("13.4 what was decoded is not decoded again", "[13.4]") {
  INFO("%25 is a percent sign, and no more than that");
  CHECK(plain("/%2541") == "/%41");
  CHECK(plain("/a/%252e%252e/b") == "/a/%2e%2e/b");
}

TEST_CASE("13.4 no name has a control byte or a slash", "[13.4]") {
  for (const std::string path :
       {"/a%00", "/%00", "/a%00.html", "/a%0a", "/%0D%0A", "/%1b[2J", "/%7f"}) {
    UNSCOPED_INFO(path << " holds a control byte: the kernel ends a name at NUL, a log ends a line "
                          "at LF, and a terminal obeys an escape");
    CHECK(plain(path) == "400");
  }
  INFO("an encoded slash is a part of a name, and no name of a file has one");
  CHECK(plain("/a%2fb") == "400");
  CHECK(plain("/..%2F..%2Fetc/passwd") == "400");
}

TEST_CASE("13.4 a dot is the same folder, and two are the folder above", "[13.4]") {
  {
    INFO("“.” adds nothing, and no slash either");
    CHECK(plain("/./a") == "/a");
    CHECK(plain("/a/./b") == "/a/b");
  }
  {
    INFO("“..” takes one folder away: the last slash of `written` is the one at its end");
    CHECK(plain("/a/b/../c") == "/a/c");
    CHECK(plain("/a/b/c/../../d") == "/a/d");
    CHECK(plain("/a/../b/../c") == "/c");
  }
  INFO("at the end they are folders, too");
  CHECK(plain("/a/.") == "/a/");
  CHECK(plain("/a/b/..") == "/a/");
  CHECK(plain("/a/..") == "/");
  CHECK(plain("/.") == "/");
  CHECK(plain("/a/b/../") == "/a/");
}

TEST_CASE("13.4 an encoded dot is a dot", "[13.4]") {
  INFO("rfc3986, 6.2.2: so decode first, and then look for dots");
  CHECK(plain("/a/%2e%2e/b") == "/b");
  CHECK(plain("/a/.%2E/b") == "/b");
  CHECK(plain("/a/%2e/b") == "/a/b");
  CHECK(plain("/%2e%2e/") == "400");
}

TEST_CASE("13.4 nothing is above the root", "[13.4]") {
  for (const std::string path : {"/..", "/../", "/../a", "/a/../..", "/a/../../b", "/./..",
                                 "/a/b/../../../c", "//..", "/%2e%2e/%2e%2e/etc/passwd"}) {
    UNSCOPED_INFO(path << " leads above the root, wherever it goes then");
    CHECK(plain(path) == "400");
  }
}

TEST_CASE("13.4 slashes are merged", "[13.4]") {
  {
    INFO("a browser takes //a for a host; and two names for one file are two entries");
    CHECK(plain("//a") == "/a");
    CHECK(plain("/a//b///c") == "/a/b/c");
    CHECK(plain("/a//") == "/a/");
    CHECK(plain("//") == "/");
  }
  UNSCOPED_INFO("an empty name is no folder that .. could take away");
  CHECK(plain("/a//../b") == "/b");
}

TEST_CASE("13.4 a plain path needs no more room than the raw one", "[13.4]") {
  std::vector<char> room(8, '!');
  const plain_path made = uring::http::make_plain("/a/b/..", room);
  UNSCOPED_INFO("the room is as large as the raw path");
  CHECK(made.path == "/a/");
  UNSCOPED_INFO("the path is made in the caller's buffer");
  CHECK(made.path.data() == room.data());
  UNSCOPED_INFO("a byte behind the raw path was written");
  CHECK(room.back() == '!');
  CHECK(uring::http::make_plain("/a/name", room).path == "/a/name");
  UNSCOPED_INFO("a byte behind the last name was written, but no slash follows this name");
  CHECK(room.back() == '!');
  UNSCOPED_INFO("ten bytes of path, and room for eight");
  CHECK(uring::http::make_plain("/a/b/c/d/e", room).refused.status == 414);
}
