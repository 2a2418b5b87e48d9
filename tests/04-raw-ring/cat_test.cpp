// SPDX-License-Identifier: MIT
// The three cats beside cat(1): the same bytes, the same complaints, the same exit code.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bytes.hpp"
#include "child_process.hpp"
#include "errors.hpp"
#include "feature.hpp"

using course_test::compare_bytes;
using course_test::identical;

namespace {

namespace fs = std::filesystem;

// A folder with the files that cats are tried on; gone with the object.
class folder {
 public:
  folder() {
    std::string name = fs::temp_directory_path() / "course-cat-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) common::throw_errno("mkdtemp");
    path_ = name;
    fs::create_directory(path_ / "directory");
    write("empty", 0);
    write("one", 1);
    write("odd", 300 * 1024 + 1);
    write("large", 1024 * 1024);  // more than a pipe holds, and than one batch of reads brings
    write("a b", 10);
  }
  folder(folder&&) = delete;
  ~folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

  void write(const std::string& name, std::size_t bytes) const {
    std::ofstream{path_ / name, std::ios::binary} << course_test::pattern(4, bytes);
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file{path_ / name, std::ios::binary};
    std::ostringstream bytes;
    bytes << file.rdbuf();  // at once: byte by byte takes seconds under a sanitizer
    return bytes.str();
  }
  [[nodiscard]] const fs::path& path() const noexcept { return path_; }

 private:
  fs::path path_;
};

struct outcome {
  std::string bytes;        // what went to standard output
  std::string complaints;   // with the program's name as "cat"
  std::string exit_status;  // in words
};

// The program's path may hold blanks.
std::string with_quotes(std::string line) {
  const std::string name = "$CAT";
  for (auto at = line.find(name); at != std::string::npos; at = line.find(name, at + 6)) {
    line.replace(at, name.size(), '"' + name + '"');
  }
  return line;
}

// Runs a line of shell in which $CAT is the program, with standard output into a file.
outcome run_cat(const folder& files, const std::string& program, const std::string& line) {
  const std::string script =
      "cd '" + files.path().string() + "' && { " + with_quotes(line) + "; } > '.output'";
  const auto run = course_test::run_program("/bin/sh", {"-c", script}, std::chrono::seconds{10},
                                            {.environment = {"CAT=" + program, "LC_ALL=C"}});
  std::string complaints;
  std::istringstream lines{run.stderr_text};
  const std::string name = fs::path{program}.filename();
  for (std::string each; std::getline(lines, each);) {
    const auto colon = each.find(": ");
    const std::string speaker = each.substr(0, colon);
    const bool ours = speaker == program || speaker == name;
    complaints += (ours ? "cat" + each.substr(colon) : each) + '\n';
  }
  return {files.read(".output"), complaints, run.status.describe()};
}

std::string real_cat() {
  for (const char* const path : {"/usr/bin/cat", "/bin/cat"}) {
    if (fs::exists(path)) return path;
  }
  SKIP("there is no cat(1) here to compare with");
  return {};
}

void compare(const std::string& program, const std::string& line, const std::string& cause = {}) {
  const folder files;
  const outcome expected = run_cat(files, real_cat(), line);
  const outcome actual = run_cat(files, course_test::program(program), line);
  UNSCOPED_INFO(line << cause);
  CHECK(compare_bytes(actual.bytes, expected.bytes) == identical);
  UNSCOPED_INFO(line);
  CHECK(actual.complaints == expected.complaints);
  UNSCOPED_INFO(line);
  CHECK(actual.exit_status == expected.exit_status);
}

void compare_files(const std::string& program) {
  for (const char* const line :
       {"$CAT empty", "$CAT one", "$CAT odd", "$CAT large", "$CAT one large empty odd one",
        "$CAT -- one", "$CAT ./one /proc/filesystems", "$CAT /proc/version",
        "$CAT /proc/devices /proc/version one"}) {
    compare(program, line);
  }
}

void compare_streams(const std::string& program) {
  for (const char* const line :
       {"$CAT < odd", "$CAT - < odd", "$CAT one - one < large", "cat large | $CAT",
        "(echo a; sleep 0.05; echo b) | $CAT", "(echo a; sleep 0.05; echo b) | $CAT - one",
        "(head -c 4 > /dev/null; $CAT) < odd", "$CAT - - < one", "$CAT < /dev/null",
        "mkfifo fifo; (cat odd > fifo &); $CAT fifo; rm fifo"}) {
    compare(program, line,
            "\na read may bring less than there was room for: only 0 is the end of a stream");
  }
}

void compare_complaints(const std::string& program) {
  for (const char* const line :
       {"$CAT missing", "$CAT one missing odd", "$CAT directory", "$CAT directory one", "$CAT ''",
        "$CAT < directory", "$CAT one/x",
        R"sh($CAT "$(printf 'a\nb\t\tc')" "$(printf '\r')" "$(printf '\033[1m\001\177.')")sh",
        "$CAT 'a b' 'no such' \"it's\" 'a:b' 'a*\"b' '~x' 'x~' '{' \"i's $\"",
        R"($CAT "it's a" "it's #" "#it's" "it's~" "{'" "'=" "a'b,c:d?")",
        "ln -s loop loop; $CAT loop; rm loop"}) {
    compare(program, line);
  }
}

void compare_broken_streams(const std::string& program) {
  for (const char* const line :
       {"$CAT large > /dev/full", "$CAT one missing > /dev/full", "$CAT one >&-",
        "cp one self; $CAT self >> self", "($CAT large; echo $? >&2) | head -c 1", "$CAT <&-",
        "$CAT - one <&-"}) {
    compare(program, line);
  }
}

void compare_without_rights(const std::string& program) {
  if (::geteuid() == 0 && ::access("/usr/bin/setpriv", X_OK) != 0) {
    SKIP("root may read everything, and there is no setpriv to become another user");
  }
  const std::string as_nobody =
      ::geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups " : "";
  compare(program, "chmod 755 .; touch secret; chmod 000 secret; " + as_nobody + "$CAT secret one");
}

}  // namespace

TEST_CASE("04 cat by readv copies files as cat does", "[04]") {
  compare_files("04-cat_readv");
}
TEST_CASE("04 cat by readv copies streams as cat does", "[04]") {
  compare_streams("04-cat_readv");
}
TEST_CASE("04 cat by readv complains as cat does", "[04]") {
  compare_complaints("04-cat_readv");
}
TEST_CASE("04 cat by readv ends as cat does at a stream that fails", "[04]") {
  compare_broken_streams("04-cat_readv");
}

TEST_CASE("04 cat by liburing copies files as cat does", "[04]") {
  course_test::require_feature("ring");
  compare_files("04-cat_uring");
}

TEST_CASE("04 cat by liburing copies streams as cat does", "[04]") {
  course_test::require_feature("ring");
  compare_streams("04-cat_uring");
}

TEST_CASE("04 cat by liburing complains as cat does", "[04]") {
  course_test::require_feature("ring");
  compare_complaints("04-cat_uring");
}

TEST_CASE("04 cat by liburing ends as cat does at a stream that fails", "[04]") {
  course_test::require_feature("ring");
  compare_broken_streams("04-cat_uring");
}

TEST_CASE("04.4 cat by the raw ring copies files as cat does", "[04.4]") {
  course_test::require_feature("raw_ring");
  compare_files("04-cat_raw");
}

TEST_CASE("04.4 cat by the raw ring copies streams as cat does", "[04.4]") {
  course_test::require_feature("raw_ring");
  compare_streams("04-cat_raw");
}

TEST_CASE("04.4 cat by the raw ring complains as cat does", "[04.4]") {
  course_test::require_feature("raw_ring");
  compare_complaints("04-cat_raw");
}

TEST_CASE("04.4 cat by the raw ring ends as cat does at a stream that fails", "[04.4]") {
  course_test::require_feature("raw_ring");
  compare_broken_streams("04-cat_raw");
}

TEST_CASE("04.4 the cats complain about a file they may not read", "[04.4]") {
  course_test::require_feature("raw_ring");
  for (const char* const program : {"04-cat_readv", "04-cat_raw", "04-cat_uring"}) {
    compare_without_rights(program);
  }
}
