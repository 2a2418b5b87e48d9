// SPDX-License-Identifier: MIT
// A test whose program calls exit(0) would be green, because CTest sees only the status. Every
// program that links the tests' support links this, too: see course_test_early_exit.
#include <unistd.h>

#include <atomic>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#include <cstdlib>
#include <string_view>

namespace {

std::atomic<::pid_t> running_in = 0;  // not in a child that a test has forked

void fail_if_running() {
  if (::getpid() != running_in) return;
  constexpr std::string_view what = "exit() was called in the middle of a test.\n";
  [[maybe_unused]] const ::ssize_t written = ::write(STDERR_FILENO, what.data(), what.size());
  ::_exit(1);
}

class exit_guard : public Catch::EventListenerBase {
 public:
  using EventListenerBase::EventListenerBase;

  void testRunStarting(const Catch::TestRunInfo&) override {
    running_in = ::getpid();
    std::atexit(fail_if_running);
    std::at_quick_exit(fail_if_running);
  }

  void testRunEnded(const Catch::TestRunStats&) override { running_in = 0; }
};

CATCH_REGISTER_LISTENER(exit_guard)

}  // namespace

extern "C" const int course_test_early_exit;  // the name by which the linker takes this file
extern "C" const int course_test_early_exit = 0;
