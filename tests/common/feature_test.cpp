// SPDX-License-Identifier: MIT
// The feature probes and require_feature(): on this kernel, and on one that refuses.
#include "feature.hpp"

#include <signal.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "child_process.hpp"
#include "fd_scope.hpp"
#include "feature_probe.hpp"
#include "isolate.hpp"
#include "refuse_calls.hpp"

using namespace std::chrono_literals;
using course_test::child_process;
using course_test::exited;
using doctor::finding;

namespace {

constexpr unsigned register_buffer_ring_opcode = 22;  // IORING_REGISTER_PBUF_RING
constexpr int all_tests_skipped = 4;                  // Catch2's exit code for it

finding try_named(const char* name) {
  const doctor::feature* const wanted = doctor::find_feature(name);
  REQUIRE(wanted != nullptr);
  return doctor::try_feature(*wanted);
}

// A seccomp filter is its thread's own, so a thread is machine enough.
finding on_a_machine_with(const std::function<void()>& filter, const char* feature) {
  finding found;
  const doctor::feature* const wanted = doctor::find_feature(feature);
  REQUIRE(wanted != nullptr);
  std::thread{[&] {
    filter();
    found = doctor::try_feature(*wanted);
  }}.join();
  return found;
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

[[noreturn]] void hang() {
  while (true) std::this_thread::sleep_for(1h);
}

[[noreturn]] void crash() {
  ::raise(SIGKILL);
  hang();
}

// Catch2's number for a failed test is another one in each of its versions.
bool failed(const course_test::exit_status& end) {
  return end.how() == course_test::exit_status::kind::exited && end != exited(0) &&
         end != exited(all_tests_skipped);
}

child_process hidden_case(const char* name, const char* environment) {
  return {"/proc/self/exe", {name}, {.environment = {environment}}};
}

}  // namespace

TEST_CASE("feature names are unique, and each one is found by its name", "[feature]") {
  std::set<std::string_view> names;
  for (const doctor::feature& each : doctor::all_features()) {
    UNSCOPED_INFO("two features are called " << each.name);
    CHECK(names.insert(each.name).second);
    CHECK(doctor::find_feature(each.name) == &each);
  }
  CHECK(doctor::find_feature("multishot_telepathy") == nullptr);
}

TEST_CASE("a try leaves no descriptor open, whether it works or not", "[feature]") {
  const course_test::fd_scope descriptors;
  for (const doctor::feature& each : doctor::all_features()) {
    const finding found = doctor::try_feature(each);
    UNSCOPED_INFO(each.name << " says: " << found.reason);
    CHECK(found.ok == found.reason.empty());
    CHECK(found.ok == found.fix.empty());
  }
  CHECK(descriptors.leaked() == "");
}

TEST_CASE("EPERM behind a seccomp filter is named as that", "[feature]") {
  const finding found =
      on_a_machine_with([] { course_test::refuse_io_uring_setup(EPERM); }, "multishot_accept");
  CHECK_FALSE(found.ok);
  CHECK(found.error == EPERM);
  UNSCOPED_INFO("reason: " << found.reason);
  CHECK(holds(found.reason, "seccomp"));
  CHECK_FALSE(found.fix.empty());
}

TEST_CASE("a feature that the kernel does not know does not hide the others", "[feature]") {
  const auto old_kernel = [] {
    course_test::refuse_io_uring_register(register_buffer_ring_opcode, EINVAL);
  };
  const finding rings = on_a_machine_with(old_kernel, "register_buffer_ring");
  CHECK_FALSE(rings.ok);
  CHECK(rings.error == EINVAL);
  UNSCOPED_INFO("reason: " << rings.reason);
  CHECK(holds(rings.reason, "io_uring_register PBUF_RING: EINVAL"));
  CHECK_FALSE(on_a_machine_with(old_kernel, "multishot_recv").ok);
  CHECK(on_a_machine_with(old_kernel, "provide_buffers").ok == try_named("provide_buffers").ok);
}

TEST_CASE("an isolated try gives the same answer as one in this process", "[feature]") {
  for (const char* const name : {"ring", "multishot_accept", "op_tee"}) {
    CHECK(doctor::try_isolated(*doctor::find_feature(name)).ok == try_named(name).ok);
  }
}

TEST_CASE("a try that hangs or crashes is an answer too", "[feature]") {
  const doctor::feature hanging{"hanging", "setup", "", "", &hang};
  const finding hung = doctor::try_isolated(hanging, 50ms);
  CHECK_FALSE(hung.ok);
  CHECK(hung.error == ETIMEDOUT);
  CHECK(holds(hung.reason, "did not end within 50 ms"));

  const doctor::feature crashing{"crashing", "setup", "", "", &crash};
  const finding crashed = doctor::try_isolated(crashing, 5s);
  CHECK_FALSE(crashed.ok);
  CHECK(holds(crashed.reason, "Killed"));
}

TEST_CASE("a required feature that works lets the test go on", "[feature]") {
  if (!try_named("ring").ok) SKIP("this machine has no io_uring");
  course_test::require_feature("ring");
  SUCCEED();
}

TEST_CASE("a missing feature skips the test, with its reason and the fix", "[feature]") {
  child_process run = hidden_case("refused: needs a ring", "COURSE_REQUIRE_FEATURES=0");
  CHECK(run.wait_for_exit(10s) == exited(all_tests_skipped));
  const std::string output = run.stdout_text();
  UNSCOPED_INFO(output);
  CHECK(holds(output, "this machine cannot do ring"));
  CHECK(holds(output, "why: io_uring_setup: EPERM"));
  CHECK(holds(output, "fix: "));
}

TEST_CASE("with COURSE_REQUIRE_FEATURES=1 a missing feature fails the test", "[feature]") {
  child_process run = hidden_case("refused: needs a ring", "COURSE_REQUIRE_FEATURES=1");
  run.leave_out_of_report();
  CHECK(failed(run.wait_for_exit(10s)));
  UNSCOPED_INFO(run.stdout_text());
  CHECK(holds(run.stdout_text(), "COURSE_REQUIRE_FEATURES=1 makes this a failure"));
}

TEST_CASE("a feature that nobody knows fails the test, and is never a skip", "[feature]") {
  child_process run = hidden_case("refused: needs a typo", "COURSE_REQUIRE_FEATURES=0");
  run.leave_out_of_report();
  CHECK(failed(run.wait_for_exit(10s)));
  UNSCOPED_INFO(run.stdout_text());
  CHECK(holds(run.stdout_text(), "multishot_telepathy"));
}

// The two cases below are what the three above start: hidden, so that nothing else runs them.
TEST_CASE("refused: needs a ring", "[.]") {
  course_test::refuse_io_uring_setup(EPERM);
  course_test::require_feature("ring");
}

TEST_CASE("refused: needs a typo", "[.]") {
  course_test::require_feature("multishot_telepathy");
}
