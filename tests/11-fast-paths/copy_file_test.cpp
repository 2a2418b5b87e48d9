// SPDX-License-Identifier: MIT
// A copy of a file that another program changes meanwhile, and the parts that a copy is made of.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bytes.hpp"
#include "cancel_source.hpp"
#include "copy_file.hpp"
#include "fd_scope.hpp"
#include "file_extents.hpp"
#include "io_context.hpp"
#include "replacement.hpp"
#include "ring_modes.hpp"
#include "test_folder.hpp"
#include "turns.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using course_test::noise;
using course_test::pass_turns;
using course_test::test_folder;
using uring::cancel_source;
using uring::extent;
using uring::io_context;
using uring::task;

namespace {

constexpr uring::copy_options small_chains{.block_bytes = 4096, .blocks_per_chain = 2, .chains = 1};

task<> resize(io_context& context, int turns, std::string path, std::uint64_t bytes) {
  co_await pass_turns(context, turns);
  std::filesystem::resize_file(path, bytes);
}

}  // namespace

TEST_CASE("11 a source that becomes shorter meanwhile leaves no copy", "[11]") {
  for (const std::uint64_t left : {0U, 1U, 5000U}) {
    const test_folder folder;
    const std::string from = folder.add("a", noise(1 << 20));
    const std::string to = folder.add("b", "old");
    io_context context;
    cancel_source source{context};
    context.spawn(resize(context, 3, from, left));
    CHECK_THROWS_MATCHES(context.run(uring::copy_file(context, source, from, to, small_chains)),
                         std::runtime_error, MessageMatches(ContainsSubstring("become shorter")));
    CHECK(folder.names() == "a b");
    CHECK(folder.content("b") == "old");
  }
}

TEST_CASE("11 a sparse source that loses its end meanwhile leaves no copy", "[11]") {
  const test_folder folder;
  const std::string from = folder.add("a", noise(64 * 1024));
  std::filesystem::resize_file(from, 1 << 30);
  io_context context;
  cancel_source source{context};
  context.spawn(resize(context, 3, from, 1 << 20));
  UNSCOPED_INFO("a hole is not read: only the size tells that a part of it is gone");
  CHECK_THROWS_MATCHES(
      context.run(uring::copy_file(context, source, from, folder.path("b"), small_chains)),
      std::runtime_error, MessageMatches(ContainsSubstring("become shorter")));
  CHECK(folder.names() == "a");
}

TEST_CASE("11 bytes that are added to a source meanwhile are copied, too", "[11]") {
  const test_folder folder;
  const std::string from = folder.add("a", noise(1 << 20));
  io_context context;
  cancel_source source{context};
  context.spawn(resize(context, 3, from, (1 << 20) + 10'000));
  context.run(uring::copy_file(context, source, from, folder.path("b"), small_chains));
  CHECK(course_test::compare_bytes(folder.content("b"), folder.content("a")) ==
        course_test::identical);
  CHECK(folder.content("b").size() == (1 << 20) + 10'000);
}

TEST_CASE("11 a copy that is canceled leaves the old target, and no descriptor", "[11]") {
  for (const uring::ring_options& options : course_test::all_rings) {
    const test_folder folder;
    const std::string from = folder.add("a", noise(4 << 20));
    const std::string to = folder.add("b", "old");
    io_context context{options};
    const course_test::fd_scope fds;
    cancel_source source{context};
    context.spawn(course_test::cancel_after(context, 3, source));
    CHECK_THROWS_MATCHES(context.run(uring::copy_file(context, source, from, to, small_chains)),
                         std::system_error, MessageMatches(ContainsSubstring("ECANCELED")));
    CHECK(folder.names() == "a b");
    CHECK(folder.content("b") == "old");
    CHECK(fds.leaked() == "");
  }
}

TEST_CASE("11 the parts of a file are those that hold data", "[11]") {
  const test_folder folder;
  const common::unique_fd file = folder.open("a", O_RDWR | O_CREAT);
  const auto all = [&](std::uint64_t size, std::uint64_t bytes_max) {
    uring::file_extents parts{file.get(), size, bytes_max};
    std::vector<extent> found;
    while (const std::optional<extent> part = parts.next()) found.push_back(*part);
    return found;
  };
  CHECK(all(0, 100).empty());
  REQUIRE(::pwrite(file.get(), "x", 1, 0) == 1);
  const std::vector<extent> one = all(1, 100);
  REQUIRE(one.size() == 1);
  CHECK((one[0].begin == 0 && one[0].end == 1));

  REQUIRE(::ftruncate(file.get(), 10 << 20) == 0);
  REQUIRE(::pwrite(file.get(), std::string(10'000, 'y').data(), 10'000, 5 << 20) == 10'000);
  std::uint64_t bytes = 0;
  std::uint64_t end = 0;
  for (const extent& each : all(10 << 20, 4096)) {
    CHECK(each.begin >= end);
    CHECK((each.bytes() > 0 && each.bytes() <= 4096));
    end = each.end;
    bytes += each.bytes();
  }
  UNSCOPED_INFO("two islands of data in ten MiB, in whole blocks of the file system");
  CHECK((bytes >= 10'001 && bytes < 1 << 20));
  CHECK(end <= 10 << 20);
}

TEST_CASE("11 a file that is one hole has no part", "[11]") {
  const test_folder folder;
  const common::unique_fd file = folder.open("a", O_RDWR | O_CREAT);
  REQUIRE(::ftruncate(file.get(), 1 << 20) == 0);
  uring::file_extents parts{file.get(), 1 << 20, 4096};
  CHECK_FALSE(parts.next().has_value());
}

TEST_CASE("11 a replacement is seen when it is complete, and not before", "[11]") {
  const test_folder folder;
  const std::string to = folder.add("b", "old");
  {
    const uring::replacement abandoned{to, 0600};
    REQUIRE(::write(abandoned.fd(), "half", 4) == 4);
    CHECK(folder.content("b") == "old");
  }
  CHECK(folder.names() == "b");
  {
    uring::replacement complete{to, 0600};
    REQUIRE(::write(complete.fd(), "whole", 5) == 5);
    complete.commit();
  }
  CHECK(folder.content("b") == "whole");
  CHECK(folder.names() == "b");
}
