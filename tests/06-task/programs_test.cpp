// SPDX-License-Identifier: MIT
// What the chapter's programs print, and what a wrong use of a task is told at run time.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "child_process.hpp"

using Catch::Matchers::ContainsSubstring;
using course_test::exited;

namespace {

constexpr std::string_view loop = "stack bytes per await, task, in a loop";
constexpr std::string_view chain = "stack bytes per await, task, in a chain";
constexpr std::string_view eager_loop = "stack bytes per await, eager task, in a loop";

std::string output_of(const std::string& program, const std::vector<std::string>& arguments = {}) {
  const auto run = course_test::run_program(course_test::program(program), arguments);
  INFO(run.stderr_text);
  REQUIRE(run.status == exited(0));
  return run.stdout_text;
}

// The number in a line "name: number".
double printed(const std::string& output, std::string_view name) {
  const std::string start = std::string{name} + ": ";
  const std::size_t at = output.find(start);
  INFO(output);
  REQUIRE(at != std::string::npos);
  return std::stod(output.substr(at + start.size()));
}

void check_misuse(const std::string& name, const std::string& sentence) {
  const auto run = course_test::run_program(course_test::program("06-misuse"), {name});
  UNSCOPED_INFO("06-misuse " << name << " should have been stopped by an assert");
  CHECK_FALSE(run.status == exited(0));
  CHECK_THAT(run.stderr_text, ContainsSubstring(sentence));
}

}  // namespace

TEST_CASE("06 tail calls keep the stack flat without optimization", "[06]") {
  const std::string output = output_of("06-stack");
  UNSCOPED_INFO("-foptimize-sibling-calls makes a symmetric transfer a jump, at -O0 too");
  CHECK(printed(output, loop) == 0);
  CHECK(printed(output, chain) == 0);
  UNSCOPED_INFO("resume() is a call on any compiler");
  CHECK(printed(output, eager_loop) > 0);
}

TEST_CASE("06 without tail calls GCC's stack grows with each await, and Clang's does not", "[06]") {
  const std::string output = output_of("06-stack-calls");
#ifdef __clang__
  UNSCOPED_INFO("Clang jumps in a symmetric transfer, whatever the flags");
  CHECK(printed(output, loop) == 0);
  CHECK(printed(output, chain) == 0);
#else
  UNSCOPED_INFO("did GCC learn to jump without -foptimize-sibling-calls? Then the page is wrong");
  CHECK(printed(output, loop) > 0);
  CHECK(printed(output, chain) > 0);
#endif
}

TEST_CASE("06 under AddressSanitizer GCC's stack grows with each await", "[06]") {
  const std::string output = output_of("06-stack-asan");
#ifdef __clang__
  CHECK(printed(output, loop) == 0);
#else
  UNSCOPED_INFO("did GCC learn to jump under AddressSanitizer? Then the page is wrong");
  CHECK(printed(output, loop) > 0);
#endif
}

TEST_CASE("06 an awaited call is one allocation", "[06]") {
  const std::string output = output_of("06-costs");
  CHECK(printed(output, "allocations per call") == 1);
  UNSCOPED_INFO("a frame holds what lives across an await");
  CHECK(printed(output, "frame bytes, 1 KiB across an await") >
        printed(output, "frame bytes, one int") + 900);
}

TEST_CASE("06 the smallest coroutine stops in its middle and goes on by resume()", "[06]") {
  CHECK(output_of("06-smallest") ==
        "  count: one\n"
        "the call has returned\n"
        "  count: two\n"
        "resume() has returned\n");
}

TEST_CASE("06 so_far shows each task of the chapter", "[06]") {
  CHECK(output_of("06-so_far") ==
        "06.1  greet() is called\n"
        "      it has returned, and none of its lines has run\n"
        "      its task has moved\n"
        "06.2  the task is awaited\n"
        "      greet runs\n"
        "06.3  a value came across: 42\n"
        "      and an exception: no answer\n"
        "06.4  main() waited for 42\n"
        "      and for 2 tasks\n"
        "06.5  a coroutine waits for a promise\n"
        "      it goes on inside resolve(), with 42\n"
        "      resolve() has returned\n");
}

TEST_CASE("06 steps are printed in the order in which they happen", "[06]") {
  CHECK(output_of("06-steps") ==
        "      a frame is made for parent\n"
        "parent runs, and calls child\n"
        "      a frame is made for child\n"
        "parent has a task, and awaits it\n"
        "  child runs\n"
        "parent has 42\n"
        "      the frame of child is destroyed\n"
        "      the frame of parent is destroyed\n"
        "main gets 42\n");
}

TEST_CASE("06 each way to call counts to its end and gives a time", "[06]") {
  for (const char* const how : {"function", "virtual", "coroutine"}) {
    const std::string output = output_of("06-calls", {"--how", how, "--count", "100000"});
    CHECK(printed(output, "calls") == 100'000);
    CHECK(printed(output, "ns per call") > 0);
  }
}

TEST_CASE("06 misuse is stopped by an assert that says what is wrong", "[06]") {
  check_misuse("empty-task", "this task is empty: it was moved from");
  check_misuse("task-twice", "this task was awaited before");
  {
    INFO("is_awaited() asks for the continuation, so it stays in the promise when the task ends");
    check_misuse("ended-task", "this task was awaited before");
  }
  check_misuse("too-early", "nothing has ended yet");
  check_misuse("promise-destroyed", "a coroutine still waits for this promise");
  check_misuse("promise-twice", "two coroutines await one promise");
  check_misuse("settled-twice", "this promise was settled before");
  check_misuse("rejected-with-nothing", "to reject takes an exception");
}
