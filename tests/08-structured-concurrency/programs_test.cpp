// SPDX-License-Identifier: MIT
// The chapter's programs, from outside: what they print, and how they end when something fails.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "child_process.hpp"
#include "errors.hpp"
#include "http_town.hpp"
#include "socket_pair.hpp"
#include "unique_fd.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using course_test::exited;
using course_test::finished_program;
using course_test::http_town;

namespace {

finished_program run(const std::string& name, const std::vector<std::string>& arguments) {
  return course_test::run_program(course_test::program(name), arguments);
}

// "all at once:   3.01 units": the number.
double units_of(const std::string& text, const std::string& line) {
  const std::size_t at = text.find(line);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + line.size()));
}

// A folder with files in it, gone at the end.
class folder {
 public:
  folder() { std::filesystem::create_directories(path_); }
  folder(folder&&) = delete;
  ~folder() { std::filesystem::remove_all(path_); }

  std::string add(const std::string& name, const std::string& content) const {
    const std::filesystem::path file = path_ / name;
    std::ofstream{file, std::ios::binary} << content;
    return file.string();
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("course-08-" + std::to_string(::getpid()));
};

// Connects to it wait: its queue is full, and nobody accepts.
class full_listener {
 public:
  full_listener() {
    common::check(::listen(listener_.socket.get(), 0), "listen");
    for (common::unique_fd& each : waiting_) {
      each = common::unique_fd{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
      ::sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(listener_.port);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      ::connect(each.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address);
    }
  }

  [[nodiscard]] std::string at(const std::string& path) const {
    return "127.0.0.1:" + std::to_string(listener_.port) + path;
  }

 private:
  course_test::tcp_listener listener_ = course_test::listen_on_any_port();
  std::array<common::unique_fd, 4> waiting_;
};

std::string repeated(const std::string& what, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += what;
  return text;
}

}  // namespace

TEST_CASE("08 a late answer is written into the next question, until the loser is joined", "[08]") {
  const finished_program program = run("08-late_answer", {});
  CHECK(program.status == exited(0));
  CHECK(program.stdout_text ==
        "forgets the loser\n"
        "  first question: \"in time.\"\n"
        "  second question, nobody has answered: \"........\" and \"TOO LATE\"\n"
        "cancels and joins it\n"
        "  first question: \"in time.\"\n"
        "  second question, nobody has answered: \"........\" and \"........\"\n");
}

TEST_CASE("08 timers take 6 units in sequence, 3 in parallel, and 1 until the first", "[08]") {
  const finished_program program = run("08-timers", {"--unit-ms", "150"});
  CHECK(program.status == exited(0));
  const std::string& text = program.stdout_text;
  // Never early; late by as much as the machine is busy, but in this order.
  const double sequence = units_of(text, "one after the other:");
  const double chained = units_of(text, "chained:");
  const double parallel = units_of(text, "all at once:");
  const double first = units_of(text, "until the first:");
  const double deadline = units_of(text, "until the deadline:");
  CHECK(sequence >= 5.99);
  CHECK(chained >= 5.99);
  CHECK(parallel >= 2.99);
  CHECK(first >= 0.99);
  UNSCOPED_INFO("the losers were waited for to their end, not canceled");
  CHECK(first < 2.9);
  CHECK(parallel < 5.9);
  CHECK(deadline >= 0.99);
  UNSCOPED_INFO("its timer of 60 units ran to its end: the deadline did not cancel it");
  CHECK(deadline < 59);
}

TEST_CASE("08 fetch prints a line for each address, in the order given", "[08]") {
  const http_town town;
  const finished_program program =
      run("08-fetch", {town.at("/slow/5"), town.at("/bytes/70000"), town.at("/chunked"),
                       "http://" + town.at("/bytes/0")});
  CHECK(program.status == exited(0));
  CHECK(program.stdout_text == town.at("/slow/5") + ": 5 bytes\n" + town.at("/bytes/70000") +
                                   ": 70000 bytes\n" + town.at("/chunked") + ": 5 bytes\n" +
                                   "http://" + town.at("/bytes/0") + ": 0 bytes\n");
}

TEST_CASE("08 fetch prints the bodies in order if it is asked to", "[08]") {
  const http_town town;
  const finished_program program =
      run("08-fetch", {"--bodies", town.at("/slow/3"), town.at("/chunked"), town.at("/bytes/1")});
  CHECK(program.stdout_text == "bbbabcdeb");
}

TEST_CASE("08 fetch never has more than its window in flight", "[08]") {
  for (const int window : {1, 3}) {
    const http_town town;
    std::vector<std::string> arguments{"--window", std::to_string(window)};
    for (int i = 0; i < 12; ++i) arguments.push_back(town.at("/slow/" + std::to_string(i)));
    const finished_program program = run("08-fetch", arguments);
    CHECK(program.status == exited(0));
    CHECK(town.served() == 12);
    UNSCOPED_INFO("never more are in flight, and no fewer as long as there are pages to fetch");
    CHECK(town.at_a_time_max() == window);
  }
}

TEST_CASE("08 fetch goes on after a failure, names each, and ends with status 1", "[08]") {
  const http_town town;
  const course_test::deaf_port nobody;
  const std::string silent = "127.0.0.1:" + std::to_string(nobody.number()) + "/";
  const finished_program program =
      run("08-fetch", {town.at("/missing"), town.at("/short"), town.at("/garbage"),
                       town.at("/reset"), silent, town.at("/bytes/7")});
  CHECK(program.status == exited(1));
  CHECK(program.stdout_text == town.at("/bytes/7") + ": 7 bytes\n");
  CHECK_THAT(program.stderr_text, ContainsSubstring("/missing: the server's answer: 404"));
  CHECK_THAT(program.stderr_text, ContainsSubstring("/short: the server's answer: it ended"));
  CHECK_THAT(program.stderr_text, ContainsSubstring("/garbage: "));
  CHECK_THAT(program.stderr_text, ContainsSubstring("/reset: "));
  CHECK_THAT(program.stderr_text, ContainsSubstring(silent + ": connect: 127.0.0.1: ECONNREFUSED"));
  CHECK_THAT(program.stderr_text, ContainsSubstring("5 of 6 failed"));
}

TEST_CASE("08 fetch gives up a server that does not answer in time, and only that one", "[08]") {
  const http_town town;
  const finished_program program = run("08-fetch", {"--timeout-ms", "500", town.at("/never"),
                                                    town.at("/bytes/2"), town.at("/never")});
  CHECK(program.status == exited(1));
  CHECK(program.stdout_text == town.at("/bytes/2") + ": 2 bytes\n");
  CHECK_THAT(program.stderr_text, ContainsSubstring("/never: no complete answer within 500 ms"));
}

TEST_CASE("08 fetch --fail-fast cancels what is in flight, and begins nothing more", "[08]") {
  const http_town town;
  const auto began = std::chrono::steady_clock::now();
  const finished_program program =
      run("08-fetch", {"--fail-fast", "--window", "2", town.at("/never"), town.at("/missing"),
                       town.at("/bytes/1")});
  UNSCOPED_INFO("the one that never answers has to be canceled: its own timeout is 10 s");
  CHECK(std::chrono::steady_clock::now() - began < 8s);
  CHECK(program.status == exited(1));
  CHECK(program.stdout_text.empty());
  CHECK_THAT(program.stderr_text, ContainsSubstring("/never: canceled: another one failed"));
  CHECK_THAT(program.stderr_text, ContainsSubstring("/bytes/1: not begun: another one failed"));
}

TEST_CASE("08 fetch tells a canceled request from a late one", "[08]") {
  const http_town town;
  const full_listener nobody_accepts;
  const finished_program program = run(
      "08-fetch", {"--fail-fast", "--window", "2", nobody_accepts.at("/"), town.at("/missing")});
  CHECK(program.status == exited(1));
  UNSCOPED_INFO("its timeout of 10 s was canceled, too, and says nothing about the time");
  CHECK_THAT(program.stderr_text, ContainsSubstring("/: canceled: another one failed"));
}

TEST_CASE("08 fetch refuses a bad address and a window of 0", "[08]") {
  for (const std::string port : {"99999", "0", "-1", "http", "80x", ""}) {
    const finished_program program = run("08-fetch", {"localhost:" + port + "/"});
    CHECK(program.status == exited(1));
    CHECK_THAT(program.stderr_text, ContainsSubstring("a port is a number from 1 to 65535"));
  }
  CHECK(run("08-fetch", {":80/"}).status == exited(1));
  CHECK(run("08-fetch", {"--window", "0", "localhost/"}).status == exited(2));
  CHECK(run("08-fetch", {}).status == exited(2));
}

TEST_CASE("08 count_chars has the same totals in three ways", "[08]") {
  const folder files;
  std::vector<std::string> names{files.add("empty", ""),
                                 files.add("one", "x"),
                                 files.add("no end of line", "a\nb"),
                                 files.add("large", repeated("x marks the spot\n", 100'000)),
                                 files.add("buffer", std::string(64 * 1024, 'x')),
                                 files.add("one more", std::string(64 * 1024 + 1, 'x'))};
  for (int i = 0; i < 200; ++i) {
    names.push_back(files.add("many" + std::to_string(i), repeated("x.", i)));
  }
  std::string first;
  for (const std::string how : {"sequential", "threads", "ring"}) {
    INFO("--how " << how);
    std::vector<std::string> arguments{"--how", how, "--char", "x"};
    arguments.insert(arguments.end(), names.begin(), names.end());
    const finished_program program = run("08-count_chars", arguments);
    CHECK(program.status == exited(0));
    if (first.empty()) first = program.stdout_text;
    CHECK(program.stdout_text == first);
  }
  // 1 + 100,000 + 65,536 + 65,537, and 0 + 1 + ... + 199
  CHECK_THAT(first, EndsWith("    250974 of    1870877  in all\n"));
}

TEST_CASE("08 count_chars names files that it cannot read, and counts the rest", "[08]") {
  const folder files;
  const std::string good = files.add("good", "a\nb\n");
  for (const std::string how : {"sequential", "threads", "ring"}) {
    INFO("--how " << how);
    const finished_program program =
        run("08-count_chars", {"--how", how, files.path("missing"), good, files.path("")});
    CHECK(program.status == exited(1));
    CHECK_THAT(program.stdout_text, StartsWith("         2 of          4  " + good));
    CHECK_THAT(program.stderr_text, ContainsSubstring("missing: ENOENT"));
    CHECK_THAT(program.stderr_text, ContainsSubstring("EISDIR"));
  }
  CHECK(run("08-count_chars", {"--how", "magic", good}).status == exited(2));
  CHECK(run("08-count_chars", {"--char", "ab", good}).status == exited(1));
}
