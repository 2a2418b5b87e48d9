// SPDX-License-Identifier: MIT
// The small programs of the chapter: hello, ping_pong, nops.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bytes.hpp"
#include "child_process.hpp"
#include "io_context.hpp"
#include "pipe_ends.hpp"
#include "socket_pair.hpp"
#include "transfers.hpp"
#include "watchdog.hpp"

using Catch::Matchers::ContainsSubstring;
using course_test::exited;
using course_test::run_program;

namespace {

course_test::finished_program run(const std::string& name, std::vector<std::string> arguments) {
  return run_program(course_test::program(name), arguments);
}

std::size_t lines_of(const std::string& text) {
  std::istringstream lines{text};
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) ++count;
  return count;
}

void check_misuse(const std::string& name, const std::string& sentence) {
  const auto misused = run("07-misuse", {name});
  UNSCOPED_INFO("07-misuse " << name << " should have been stopped by an assert");
  CHECK_FALSE(misused.status == exited(0));
  CHECK_THAT(misused.stderr_text, ContainsSubstring(sentence));
}

}  // namespace

TEST_CASE("07 misuse is stopped by an assert that says what is wrong") {
  check_misuse("more-completions", "more completions follow, and would find the frame gone");
  check_misuse("no-completion", "nothing would tell how it ended");
  check_misuse("odd-word", "this bit tells a message from an operation");
  check_misuse("error-as-count", "look at the error first: it is no count");
}

TEST_CASE("07 hello writes its line through the ring") {
  const auto once = run("07-hello", {});
  CHECK(once.status == exited(0));
  CHECK(once.stdout_text == "hello from a frame\n");
  const auto often = run("07-hello", {"--text", "again", "--times", "1000"});
  CHECK(often.status == exited(0));
  CHECK(often.stdout_text.size() == 6000);
  CHECK(lines_of(often.stdout_text) == 1000);
}

TEST_CASE("07 hello reports that nobody reads its output") {
  const auto closed = run_program("/bin/sh", {"-c", "\"$0\" --times 100000 | head -c 1",
                                              course_test::program("07-hello").string()});
  CHECK(closed.status == exited(0));  // head's
  CHECK_THAT(closed.stderr_text, ContainsSubstring("write: EPIPE"));
}

TEST_CASE("07 write_all goes on after a short write, also into a pipe that does not block") {
  for (const int flags : {O_CLOEXEC, O_CLOEXEC | O_NONBLOCK}) {
    const course_test::watchdog deadline{std::chrono::milliseconds{10'000},
                                         "what does not fit now has to go later"};
    course_test::pipe_ends pipe = course_test::make_pipe(flags);
    const std::string sent(1'000'000, 'x');
    std::size_t got = 0;
    std::jthread reader{[&pipe, &got, &sent] {
      std::array<char, 50'000> buffer;
      while (got < sent.size()) {
        const ::ssize_t bytes = ::read(pipe.read.get(), buffer.data(), buffer.size());
        if (bytes > 0) got += static_cast<std::size_t>(bytes);
        if (bytes == 0) return;
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
      }
    }};
    uring::io_context context;
    context.run(uring::write_all(context, pipe.write.get(), course_test::bytes_of(sent)));
    pipe.write.reset();
    reader.join();
    CHECK(got == sent.size());
  }
}

TEST_CASE("07 send_all goes on after a short send") {
  const course_test::watchdog deadline{std::chrono::milliseconds{10'000},
                                       "what does not fit now has to go later"};
  course_test::socket_pair sockets = course_test::unix_pair();
  const std::string sent(3'000'000, 'x');
  std::size_t got = 0;
  std::jthread reader{[&] {
    std::array<char, 50'000> buffer;
    for (::ssize_t bytes = 1; bytes > 0; got += static_cast<std::size_t>(bytes)) {
      bytes = ::recv(sockets.ours.get(), buffer.data(), buffer.size(), 0);
    }
  }};
  uring::io_context context;
  context.run(uring::send_all(context, sockets.theirs.get(), course_test::bytes_of(sent)));
  sockets.theirs.reset();
  reader.join();
  CHECK(got == sent.size());
}

TEST_CASE("07 ping_pong plays to the end") {
  const auto twenty = run("07-ping_pong", {});
  CHECK(twenty.status == exited(0));
  CHECK(twenty.stdout_text == "20 pings, 20 pongs\n");
  UNSCOPED_INFO("without a round EOF comes at once");
  CHECK(run("07-ping_pong", {"--rounds", "0"}).stdout_text == "0 pings, 0 pongs\n");
}

TEST_CASE("07 nops prints a time for each way") {
  // Few: on a busy machine each yield gives away a time slice.
  const auto all = run("07-nops", {"--count", "10"});
  CHECK(all.status == exited(0));
  CHECK(lines_of(all.stdout_text) == 7);
  for (const std::string way : {"raw", "coroutine", "yield", "pause"}) {
    CHECK_THAT(all.stdout_text, ContainsSubstring(way));
    const auto one = run("07-nops", {"--way", way, "--batch", "64", "--count", "65"});
    CHECK(one.status == exited(0));
    CHECK_THAT(one.stdout_text, ContainsSubstring("ns per operation: "));
  }
}
