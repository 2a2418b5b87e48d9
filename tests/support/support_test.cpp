// SPDX-License-Identifier: MIT
// Tests of the harness: a test that reports the wrong thing about a server costs a student hours.
#include <sys/wait.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "bytes.hpp"
#include "child_process.hpp"
#include "client.hpp"
#include "eventually.hpp"
#include "fd_scope.hpp"
#include "patience.hpp"
#include "process_counts.hpp"
#include "server_process.hpp"
#include "socket_pair.hpp"

using namespace course_test;
using Catch::Matchers::ContainsSubstring;

namespace {

child_process shell(const std::string& script) {
  return child_process{"/bin/sh", {"-c", script}};
}

finished_program run_shell(const std::string& script, const child_options& options = {}) {
  return run_program("/bin/sh", {"-c", script}, milliseconds{5000}, options);
}

}  // namespace

TEST_CASE("a child's end is told in words", "[support]") {
  CHECK(run_shell("exit 3").status == exited(3));
  CHECK(run_shell("kill -SEGV $$").status == killed_by(SIGSEGV));
  CHECK(killed_by(SIGSEGV).describe() == "was killed by signal 11 (SIGSEGV, Segmentation fault)");
  CHECK(exited(1).describe() == "exited with status 1");
}

TEST_CASE("a child that prints more than a pipe holds is not held up", "[support]") {
  const finished_program child = run_shell("head -c 3000000 /dev/zero; echo end; echo oops >&2");
  CHECK(child.status == exited(0));
  CHECK(child.stdout_text.size() < 1000000);
  CHECK_THAT(child.stdout_text.substr(child.stdout_text.size() - 100), ContainsSubstring("end"));
  CHECK(child.stderr_text == "oops\n");
}

TEST_CASE("a child that ignores SIGTERM is gone when its object is", "[support]") {
  ::pid_t pid = -1;
  {
    const child_process child = shell("trap '' TERM; echo ready; while :; do sleep 1; done");
    pid = child.pid();
    REQUIRE(eventually(step_deadline, [&] { return child.stdout_text() == "ready\n"; }));
  }
  CHECK(::waitpid(pid, nullptr, WNOHANG) == -1);
  CHECK(::kill(pid, 0) == -1);
}

TEST_CASE("processes that a child has started end with it", "[support]") {
  const finished_program parent = run_shell("sleep 60 & echo $!");
  const ::pid_t grandchild = std::stoi(parent.stdout_text);
  const auto gone = [&] {  // an orphan is somebody else's to reap, but a zombie holds nothing
    try {
      return open_fd_count(grandchild) == 0;
    } catch (const std::runtime_error&) {
      return true;
    }
  };
  CHECK(eventually(step_deadline, gone));
}

TEST_CASE("a child has the descriptors and the environment it is given", "[support]") {
  const auto child = run_shell("ulimit -n; echo $COURSE_WORD; ls /proc/self/fd | wc -l",
                               {.fd_limit = 32, .environment = {"COURSE_WORD=two words"}});
  CHECK(child.stdout_text == "32\ntwo words\n4\n");  // 0, 1, 2, and the one that ls reads
}

TEST_CASE("a child and its pipes leave no descriptor behind", "[support]") {
  const fd_scope fds;
  CHECK(run_shell("exit 0").status == exited(0));
  {
    const child_process killed = shell("sleep 60");
  }
  CHECK(fds.leaked() == "");
}

TEST_CASE("a descriptor that is left open is named", "[support]") {
  const fd_scope fds;
  const socket_pair pair = unix_pair();
  CHECK_THAT(fds.leaked(), ContainsSubstring("fd " + std::to_string(pair.ours.get()) +
                                             " is still open: socket:"));
}

TEST_CASE("a program that is not there is named", "[support]") {
  CHECK_THROWS_WITH(server_process{"/nonexistent/01-server"},
                    ContainsSubstring("/nonexistent/01-server (is it built?)"));
}

TEST_CASE("a server that ends before it announces itself is described", "[support]") {
  CHECK_THROWS_WITH(server_process{"/bin/ls"},
                    ContainsSubstring("ended by itself: it exited with status 2") &&
                        ContainsSubstring("Its stderr:") && ContainsSubstring("--host"));
}

TEST_CASE("a failed test prints what its children said and how they ended", "[support]") {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  const finished_program test =
      run_program(self, {"a test that fails beside a child that crashed"});
  CHECK_THAT(test.stdout_text, ContainsSubstring("the deliberate failure"));
  CHECK_THAT(test.stderr_text,
             ContainsSubstring("ended by itself: it was killed by signal 6 (SIGABRT, Aborted); its "
                               "stderr:\n    last words\n"));
}

TEST_CASE("a failed test prints every message whole, in a line of its own", "[support]") {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  const finished_program test = run_program(self, {"a test that fails in many words"});
  const std::string many(200, 'x');
  CHECK(test.status == exited(42));
  CHECK_THAT(test.stdout_text,
             ContainsSubstring("\n  CHECK( 1 + 1 == 3 )\nwith expansion:\n  2 == 3\n"
                               "with message:\n  an " +
                               many + " end\n  next\n"));
  CHECK_THAT(test.stdout_text,
             ContainsSubstring("FAILED:\n  CHECK_THROWS( 1 )\n"
                               "because no exception was thrown where one was expected:\n\n"));
}

// Hidden: run by the cases above.
TEST_CASE("a test that fails in many words", "[.]") {
  UNSCOPED_INFO("an " << std::string(200, 'x') << " end\nnext");
  CHECK(1 + 1 == 3);
  CHECK_THROWS(1);
}

TEST_CASE("a test that fails beside a child that crashed", "[.]") {
  const child_process child = shell("echo last words >&2; kill -ABRT $$");
  throw std::runtime_error{"the deliberate failure"};
}

TEST_CASE("a test that ends its own program has failed, whatever the status", "[support]") {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  const finished_program test = run_program(self, {"a test that calls exit"});
  CHECK(test.status == exited(1));
  CHECK_THAT(test.stderr_text, ContainsSubstring("exit() was called in the middle of a test"));
}

// Hidden: run by the case above.
TEST_CASE("a test that calls exit", "[.]") {
  std::exit(0);
}

TEST_CASE("CPU time, threads and memory of another process are seen", "[support]") {
  const child_process idle = shell("sleep 60");
  const child_process busy = shell("while :; do :; done");
  CHECK(eventually(step_deadline, [&] { return cpu_time(busy.pid()) > milliseconds{50}; }));
  CHECK(cpu_time(idle.pid()) < milliseconds{50});
  CHECK(thread_count(idle.pid()) == 1);
  CHECK(resident_bytes(idle.pid()) > 0);
  CHECK(context_switches(idle.pid()) > 0);
}

TEST_CASE("a payload tells client and position, and starts anywhere", "[support]") {
  CHECK(pattern(17, 32) == "c00017@00000000|c00017@00000016|");
  CHECK(pattern(17, 20, 5) == pattern(17, 25).substr(5));
  CHECK(pattern(1, 100) != pattern(2, 100));
}

TEST_CASE("a comparison says where two payloads differ", "[support]") {
  const std::string sent = pattern(1, 1000);
  std::string wrong = sent;
  wrong[500] = '#';
  CHECK(compare_bytes(sent, sent) == identical);
  CHECK_THAT(compare_bytes(wrong, sent),
             ContainsSubstring("the first difference is at offset 500"));
  CHECK_THAT(compare_bytes(sent.substr(0, 10), sent), ContainsSubstring("the rest is missing"));
  CHECK_THAT(compare_bytes(sent + "x", sent), ContainsSubstring("more came: "));
  CHECK_THAT(compare_bytes(pattern(2, 1000), sent), ContainsSubstring("offset 5:"));
}

TEST_CASE("a client says what it waited for and what came", "[support]") {
  const tcp_listener listener = listen_on_any_port();
  client peer{listener.port};
  const std::string waited = std::to_string(20 * course_test::patience()) + " ms";
  CHECK_THROWS_WITH(peer.recv_exactly(5, milliseconds{20}),
                    ContainsSubstring("got 0 of 5 bytes, then nothing more within " + waited));
  CHECK_THROWS_WITH(peer.echo("hello", milliseconds{20}),
                    ContainsSubstring("sent 5 of 5 bytes, got 0 back"));
  CHECK(peer.unacknowledged_bytes() == 0);
  CHECK(peer.wait_for_end(milliseconds{20}) == ending::still_open);
}
