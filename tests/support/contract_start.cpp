// SPDX-License-Identifier: MIT
// The echo contract: what a server says before it serves, and when it cannot.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "contract_server.hpp"
#include "errors.hpp"
#include "eventually.hpp"
#include "process_counts.hpp"
#include "socket_pair.hpp"
#include "unique_fd.hpp"

using namespace course_test;
using Catch::Matchers::ContainsSubstring;

namespace {

finished_program run_server(std::vector<std::string> arguments) {
  const auto always = contract_arguments();
  arguments.insert(arguments.begin(), always.begin(), always.end());
  return run_program(contract_program(), arguments, milliseconds{5000});
}

// A pipe without room: a program that prints into it waits.
class full_pipe {
 public:
  full_pipe() {
    std::array<int, 2> ends{};
    common::check(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), "pipe2");
    reader_ = common::unique_fd{ends[0]};
    writer_ = common::unique_fd{ends[1]};
    const std::string page(4096, '.');
    while (::write(writer_.get(), page.data(), page.size()) > 0) continue;
  }

  // For a shell's >, which opens it anew, and so as one whose writers wait.
  [[nodiscard]] std::string path() const {
    return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(writer_.get());
  }

 private:
  common::unique_fd reader_;
  common::unique_fd writer_;
};

}  // namespace

TEST_CASE("the first line on stdout says where it listens") {
  const server_process server = start_contract_server();
  const std::string line = "listening on 127.0.0.1:" + std::to_string(server.port()) + "\n";
  UNSCOPED_INFO("scripts read this line to learn the port: nothing before it, nothing beside it");
  CHECK(server.stdout_text().substr(0, line.size()) == line);
  UNSCOPED_INFO("the line was printed before listen(): the port it names refuses clients");
  check_still_serves(server);
}

TEST_CASE("SIGTERM is caught before it says where it listens") {
  const full_pipe out;  // holds it up where it prints its first line
  std::vector<std::string> words = contract_arguments();
  words.insert(words.begin(), {"-c", "exec \"$0\" \"$@\" > " + out.path(), contract_program(),
                               "--host", "127.0.0.1", "--port", "0"});
  child_process server{"/bin/sh", words};
  UNSCOPED_INFO(
      "a script that reads the line may send a signal at once, and that would kill the server: "
      "have a handler before the announcement");
  CHECK(eventually(step_deadline, [&] { return signal_caught(server.pid(), SIGTERM); }));
  server.send_signal(SIGKILL);  // a clean stop would wait for the line to go out
}

TEST_CASE("a port in use ends it with status 1 and a sentence that names the port") {
  const tcp_listener holder = listen_on_any_port();
  const std::string port = std::to_string(holder.port);
  const finished_program server = run_server({"--port", port});
  UNSCOPED_INFO("still running: bind() failed and nobody looked, or SO_REUSEPORT let two share it");
  CHECK(server.status == exited(1));
  UNSCOPED_INFO(
      "the message says what was tried, what failed and what to do: the reader wants to know which "
      "port");
  CHECK_THAT(server.stderr_text, ContainsSubstring(port));
  UNSCOPED_INFO("a script would take this for a server that runs");
  CHECK_THAT(server.stdout_text, !ContainsSubstring("listening on"));
}

TEST_CASE("a flag it does not know ends it with status 2 and a sentence that names the flag") {
  const finished_program unknown = run_server({"--no-such-flag"});
  CHECK(unknown.status == exited(2));
  CHECK_THAT(unknown.stderr_text, ContainsSubstring("no-such-flag"));
  const finished_program no_number = run_server({"--port", "banana"});
  UNSCOPED_INFO("atoi() makes 0 of it, and the server listens somewhere");
  CHECK(no_number.status == exited(2));
  CHECK_THAT(no_number.stderr_text, ContainsSubstring("--port"));
}

TEST_CASE("the flag --help lists the flags that every server has") {
  const finished_program server = run_server({"--help"});
  CHECK(server.status == exited(0));
  for (const char* flag : {"--host", "--port", "--threads", "--help"}) {
    CHECK_THAT(server.stdout_text, ContainsSubstring(flag));
  }
}
