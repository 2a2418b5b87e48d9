// SPDX-License-Identifier: MIT
// link_cp from outside: it copies everything, or says why not and leaves the old target.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "bytes.hpp"
#include "child_process.hpp"
#include "errors.hpp"
#include "eventually.hpp"
#include "test_folder.hpp"

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using course_test::exited;
using course_test::finished_program;
using course_test::noise;
using course_test::test_folder;

namespace {

using words = std::vector<std::string>;

finished_program copy(const std::string& from, const std::string& to, const words& options = {}) {
  words arguments{from, to};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return course_test::run_program(course_test::program("11-link_cp"), arguments, 60s);
}

// In a shell, where $COPY is the program and $DIR the folder.
finished_program in_shell(const test_folder& folder, const std::string& script) {
  return course_test::run_program(
      "/bin/sh", {"-c", script}, 60s,
      {.environment = {"COPY=" + course_test::program("11-link_cp").string(),
                       "DIR=" + folder.path("")}});
}

void check_refusal(const finished_program& ended, const std::string& says) {
  CHECK(ended.status == exited(1));
  CHECK_THAT(ended.stderr_text, ContainsSubstring(says));
}

unsigned mode_of(const std::string& path) {
  struct ::stat found{};
  common::check(::stat(path.c_str(), &found), path);
  return found.st_mode & 07777;
}

}  // namespace

TEST_CASE("11 link_cp copies files of every size", "[11]") {
  const test_folder folder;
  constexpr std::size_t block = 64 * 1024;
  constexpr std::size_t mib = 1 << 20;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, block - 1, block, block + 1,
                                  8 * block, 8 * block + 1, mib + 1, 64 * mib}) {
    const std::string content = noise(bytes);
    const std::string from = folder.add("a", content);
    const finished_program ended = copy(from, folder.path("b"));
    REQUIRE(ended.status == exited(0));
    REQUIRE(course_test::compare_bytes(folder.content("b"), content) == course_test::identical);
    CHECK(ended.stderr_text.empty());
    CHECK(folder.names() == "a b");
  }
}

TEST_CASE("11 link_cp copies by chains and blocks of every length, on every ring", "[11]") {
  const test_folder folder;
  const std::string content = noise((1 << 20) + 1);
  const std::string from = folder.add("a", content);
  for (const words& options : {
           words{"--sq", "1"},
           words{"--sq", "4", "--cq", "8", "--block", "4096", "--blocks-per-chain", "100"},
           words{"--sq", "4", "--ring-flags", "sqpoll", "--block", "8192"},
           words{"--ring-flags", "defer", "--block", "4097", "--blocks-per-chain", "3"},
           words{"--ring-flags", "coop", "--chains", "1", "--blocks-per-chain", "1"},
           words{"--block", "1000", "--chains", "64", "--blocks-per-chain", "7"},
           words{"--block", "1048576", "--chains", "2"},
       }) {
    INFO("with " << options[0] << " " << options[1]);
    const finished_program ended = copy(from, folder.path("b"), options);
    REQUIRE(ended.status == exited(0));
    REQUIRE(course_test::compare_bytes(folder.content("b"), content) == course_test::identical);
  }
}

TEST_CASE("11 link_cp leaves holes where they were", "[11]") {
  const test_folder folder;
  {
    const common::unique_fd sparse = folder.open("a", O_RDWR | O_CREAT);
    REQUIRE(::pwrite(sparse.get(), "begin", 5, 0) == 5);
    REQUIRE(::pwrite(sparse.get(), "middle", 6, 300'000'000) == 6);
    REQUIRE(::ftruncate(sparse.get(), 1'000'000'000) == 0);
  }
  REQUIRE(copy(folder.path("a"), folder.path("b")).status == exited(0));
  CHECK(fs::file_size(folder.path("b")) == 1'000'000'000);
  const common::unique_fd copied = folder.open("b");
  std::array<char, 6> text{};
  CHECK(::pread(copied.get(), text.data(), 5, 0) == 5);
  CHECK(std::string{text.data(), 5} == "begin");
  CHECK(::pread(copied.get(), text.data(), 6, 300'000'000) == 6);
  CHECK(std::string{text.data(), 6} == "middle");
  CHECK(::pread(copied.get(), text.data(), 1, 999'999'999) == 1);
  CHECK(text[0] == '\0');
  struct ::stat found{};
  REQUIRE(::fstat(copied.get(), &found) == 0);
  UNSCOPED_INFO("the holes were written out as zeros");
  CHECK(found.st_blocks * 512 < 10'000'000);
}

TEST_CASE("11 link_cp copies a file whose size is 0 although it has bytes", "[11]") {
  const test_folder folder;
  REQUIRE(copy("/proc/version", folder.path("b")).status == exited(0));
  CHECK_THAT(folder.content("b"), ContainsSubstring("Linux"));
}

TEST_CASE("11 link_cp replaces the old target, and keeps its mode", "[11]") {
  const test_folder folder;
  const std::string from = folder.add("a", "new");
  const std::string to = folder.add("b", "old, and longer");
  fs::create_hard_link(to, folder.path("c"));
  fs::permissions(to, fs::perms{0600});
  REQUIRE(copy(from, to).status == exited(0));
  CHECK(folder.content("b") == "new");
  CHECK(mode_of(to) == 0600);
  UNSCOPED_INFO("the file is replaced, and not written into: its other name keeps the old one");
  CHECK(folder.content("c") == "old, and longer");
  CHECK(folder.names() == "a b c");
}

TEST_CASE("11 link_cp gives a new file the mode of its source, less the umask", "[11]") {
  const test_folder folder;
  fs::permissions(folder.add("a", "x"), fs::perms{0777});
  REQUIRE(in_shell(folder, R"(umask 027; exec "$COPY" "$DIR/a" "$DIR/b")").status == exited(0));
  CHECK(mode_of(folder.path("b")) == 0750);
}

TEST_CASE("11 link_cp goes through a symbolic link, and leaves it one", "[11]") {
  const test_folder folder;
  const std::string from = folder.add("a", "new");
  folder.add("b", "old");
  fs::create_symlink("b", folder.path("l"));
  REQUIRE(copy(from, folder.path("l")).status == exited(0));
  CHECK(fs::is_symlink(folder.path("l")));
  CHECK(folder.content("b") == "new");
  REQUIRE(copy(folder.path("l"), folder.path("c")).status == exited(0));
  CHECK(folder.content("c") == "new");

  fs::create_symlink("nowhere", folder.path("m"));
  check_refusal(copy(from, folder.path("m")), "ENOENT");
  CHECK(folder.names() == "a b c l m");
}

TEST_CASE("11 link_cp does not copy a file onto itself", "[11]") {
  const test_folder folder;
  const std::string from = folder.add("a", "precious");
  fs::create_hard_link(from, folder.path("h"));
  fs::create_symlink("a", folder.path("l"));
  for (const char* const name : {"a", "h", "l"}) {
    check_refusal(copy(from, folder.path(name)), "the same file as the source");
  }
  CHECK(folder.content("a") == "precious");
  CHECK(folder.names() == "a h l");
}

TEST_CASE("11 link_cp refuses all but regular files, and does not wait for them", "[11]") {
  const test_folder folder;
  const std::string from = folder.add("a", "x");
  REQUIRE(::mkfifo(folder.path("f").c_str(), 0600) == 0);
  fs::create_directory(folder.path("d"));
  for (const std::string& other : {folder.path("f"), folder.path("d"), std::string{"/dev/full"},
                                   std::string{"/dev/null"}, std::string{"/dev/zero"}}) {
    INFO(other);
    check_refusal(copy(from, other), "not a regular file");
    if (other != folder.path("d")) {
      check_refusal(copy(other, folder.path("b")), "not a regular file");
    }
  }
  check_refusal(copy(folder.path("d"), folder.path("b")), "not a regular file");
  UNSCOPED_INFO("a device would be replaced by a file");
  CHECK(fs::is_character_file("/dev/full"));
  CHECK(folder.names() == "a d f");
}

TEST_CASE("11 link_cp says what is missing", "[11]") {
  const test_folder folder;
  const std::string from = folder.add("a", "x");
  check_refusal(copy(folder.path("none"), folder.path("b")), "none: ENOENT");
  check_refusal(copy(from, folder.path("none/b")), "ENOENT");
  check_refusal(copy(from, folder.path("a/b")), "ENOTDIR");
  check_refusal(copy(from, folder.path(std::string(300, 'n'))), "ENAMETOOLONG");
  CHECK(copy("", folder.path("b")).status == exited(1));
  CHECK(copy(from, "").status == exited(1));
  CHECK(course_test::run_program(course_test::program("11-link_cp"), {from}).status == exited(2));
  CHECK(folder.names() == "a");
}

TEST_CASE("11 link_cp needs the right to read, and to write", "[11]") {
  if (::geteuid() == 0 && ::access("/usr/bin/setpriv", X_OK) != 0) {
    SKIP("root may do everything, and there is no setpriv to become another user");
  }
  const std::string as_nobody =
      ::geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups " : "";
  const test_folder folder;
  folder.add("a", "x");
  folder.add("secret", "x");
  folder.add("fixed", "old");
  // From a folder that anybody may enter: the build's may be its owner's alone.
  const std::string prepare =
      R"(cd "$DIR"; cp "$COPY" program; chmod 777 .; chmod 000 secret; chmod 444 fixed; )" +
      as_nobody;
  check_refusal(in_shell(folder, prepare + "./program secret b"), "secret: EACCES");
  UNSCOPED_INFO("the folder would allow to replace it; the file's own mode forbids");
  check_refusal(in_shell(folder, prepare + "./program a fixed"), "fixed: EACCES");
  CHECK(folder.content("fixed") == "old");
  CHECK(folder.names() == "a fixed program secret");
  if (::geteuid() != 0) return;
  check_refusal(in_shell(folder, R"(cd "$DIR"; chmod 755 .; )" + as_nobody + "./program a b"),
                "EACCES");
}

TEST_CASE("11 link_cp that may not write so much leaves the old target", "[11]") {
  const test_folder folder;
  folder.add("a", noise(1 << 20));
  folder.add("b", "old");
  for (const char* const target : {"b", "c"}) {
    const finished_program ended =
        in_shell(folder, R"(ulimit -f 100; exec "$COPY" "$DIR/a" "$DIR"/)" + std::string{target});
    UNSCOPED_INFO("the signal SIGXFSZ ends a program that does not ignore it");
    check_refusal(ended, "EFBIG");
  }
  CHECK(folder.content("b") == "old");
  CHECK(folder.names() == "a b");
}

TEST_CASE("11 link_cp to a file system that is full leaves nothing", "[11]") {
  const test_folder folder;
  folder.add("a", noise(1 << 20));
  fs::create_directory(folder.path("full"));
  const finished_program ended = in_shell(folder, R"(
    own=--mount; unshare $own true 2>/dev/null || own="--user --map-root-user --mount"
    unshare $own true 2>/dev/null || exit 77
    unshare $own sh -c 'mount -t tmpfs -o size=256k none "$DIR/full" || exit 77
      echo old > "$DIR/full/b"
      "$COPY" "$DIR/a" "$DIR/full/b"; echo "status $?"
      "$COPY" "$DIR/a" "$DIR/full/c"; echo "status $?"
      ls -A "$DIR/full"; cat "$DIR/full/b"')");
  if (ended.status == exited(77)) SKIP("this machine lets nobody mount a small file system");
  CHECK(ended.stdout_text == "status 1\nstatus 1\nb\nold\n");
  CHECK_THAT(ended.stderr_text, ContainsSubstring("ENOSPC"));
}

TEST_CASE("11 link_cp that is stopped leaves the old target", "[11]") {
  for (const int signal : {SIGTERM, SIGINT}) {
    const test_folder folder;
    folder.add("a", std::string(32 << 20, 'x'));
    folder.add("b", "old");
    course_test::child_process child{course_test::program("11-link_cp"),
                                     {folder.path("a"), folder.path("b"), "--block", "64",
                                      "--chains", "1", "--blocks-per-chain", "1"}};
    REQUIRE(course_test::eventually(5s, [&] { return folder.names() != "a b"; }));
    child.send_signal(signal);
    CHECK(child.wait_for_exit(10s) == exited(1));
    CHECK_THAT(child.stderr_text(), ContainsSubstring("stopped"));
    CHECK(folder.names() == "a b");
    CHECK(folder.content("b") == "old");
  }
}
