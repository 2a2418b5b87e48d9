// SPDX-License-Identifier: MIT
// Every file of the corpus, and so everything that fuzzing has ever found, as an ordinary test.
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz_oracle.hpp"

TEST_CASE("13 no file of the corpus breaks a promise of the parser", "[13]") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator{COURSE_CORPUS_DIR}) {
    std::ifstream file{entry.path(), std::ios::binary};
    const std::string bytes{std::istreambuf_iterator<char>{file}, {}};
    const std::string problem = course_test::check_any_bytes(bytes);
    UNSCOPED_INFO("the file " << entry.path() << ": " << problem);
    CHECK(problem.empty());
    ++files;
  }
  UNSCOPED_INFO("is the corpus gone? It stands in " << COURSE_CORPUS_DIR);
  CHECK(files >= 30);
}
