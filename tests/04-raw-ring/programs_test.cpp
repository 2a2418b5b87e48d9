// SPDX-License-Identifier: MIT
// The programs of the chapter: what they link, and how often they enter the kernel.
#include <catch2/catch_test_macros.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "child_process.hpp"
#include "feature.hpp"

namespace {

std::string output_of(const std::vector<std::string>& command) {
  const auto run = course_test::run_program("/usr/bin/env", command);
  INFO(run.stderr_text);
  REQUIRE(run.status == course_test::exited(0));
  return run.stdout_text;
}

// The functions of liburing that a program holds or asks the dynamic linker for, and the library
// itself if it needs it. `_io_uring…` inside a C++ name is a parameter's type and does not count.
std::vector<std::string> of_liburing(const std::string& program) {
  const std::string path = course_test::program(program);
  std::istringstream symbols{output_of({"nm", path})};
  std::vector<std::string> found;
  for (std::string line; std::getline(symbols, line);) {
    const std::string name = line.substr(line.rfind(' ') + 1);
    if (name.starts_with("io_uring_") || name.starts_with("__io_uring_")) found.push_back(name);
  }
  if (output_of({"readelf", "-d", path}).find("liburing.so") != std::string::npos) {
    found.emplace_back("liburing.so");
  }
  return found;
}

}  // namespace

TEST_CASE("04 the raw programs link no function of liburing", "[04]") {
  UNSCOPED_INFO("nm and readelf see what they look for: cat_uring is made of liburing");
  REQUIRE_FALSE(of_liburing("04-cat_uring").empty());
  for (const char* const program : {"04-cat_raw", "04-cat_readv", "04-nops", "04-probe"}) {
    UNSCOPED_INFO(program << " is to do without the library: syscall(2) and mmap(2) alone");
    CHECK(of_liburing(program).empty());
  }
}

TEST_CASE("04.4 one entry into the kernel carries a whole batch", "[04.4]") {
  course_test::require_feature("raw_ring");
  struct batch {
    std::string size;
    std::string printed;
  };
  for (const batch& each : {batch{"1", "1000 NOPs, 1000 enters\n"},
                            {"8", "1000 NOPs, 125 enters\n"},
                            {"64", "1000 NOPs, 16 enters\n"},
                            {"1000", "1000 NOPs, 1 enters\n"}}) {
    const auto run = course_test::run_program(course_test::program("04-nops"),
                                              {"--batch", each.size, "--count", "1000"});
    CHECK(run.status == course_test::exited(0));
    UNSCOPED_INFO("hand over all SQEs that were taken and wait for all of them, in the same entry");
    CHECK(run.stdout_text == each.printed);
  }
}

TEST_CASE("04.4 a comparison of batch sizes has a line for each", "[04.4]") {
  course_test::require_feature("raw_ring");
  const auto run =
      course_test::run_program(course_test::program("04-nops"), {"--compare", "--count", "1000"});
  CHECK(run.status == course_test::exited(0));
  std::istringstream lines{run.stdout_text};
  int count = 0;
  for (std::string line; std::getline(lines, line);) ++count;
  CHECK(count == 5);
}
