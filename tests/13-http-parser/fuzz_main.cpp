// SPDX-License-Identifier: MIT
// What libFuzzer calls with one input after the other: ./course fuzz 13
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fuzz_oracle.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string problem =
      course_test::check_any_bytes({reinterpret_cast<const char*>(data), size});
  if (problem.empty()) return 0;
  std::fprintf(stderr, "FOUND: %s\n", problem.c_str());
  std::abort();
}
