// SPDX-License-Identifier: MIT
// The cache by itself, with a clock that the test sets.
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "file_cache.hpp"

using namespace std::chrono_literals;
using uring::http::file_cache;
using uring::http::file_facts;
using uring::http::file_validators;
using uring::http::limit_clock;
using uring::http::small_file;

namespace {

constexpr limit_clock::time_point start{1000s};

std::shared_ptr<const small_file> a_file(std::size_t bytes, std::int64_t modified_s = 1) {
  const file_facts facts{.bytes = bytes, .modified_s = modified_s};
  return std::make_shared<const small_file>(
      small_file{facts, file_validators{facts}, "text/plain", std::string(bytes, 'x'), 0});
}

void put(file_cache& cache, std::string_view path, std::size_t bytes,
         limit_clock::time_point now = start) {
  cache.begin_check(path).keep(a_file(bytes), now);
}

// So many bytes that `count` files of 1,000 fit, and no more.
std::size_t room_for(std::size_t count) {
  file_cache cache{{.bytes_max = 1'000'000}};
  put(cache, "/0", 1000);
  return count * cache.bytes();
}

}  // namespace

TEST_CASE("14.3 a file is sent without a look at the disk while it is fresh", "[14.3]") {
  file_cache cache{{.fresh_ms = 100ms}};
  put(cache, "/a", 10);
  UNSCOPED_INFO("it was checked just now");
  CHECK(cache.find("/a", start) != nullptr);
  UNSCOPED_INFO("99 of 100 milliseconds have gone by");
  CHECK(cache.find("/a", start + 99ms) != nullptr);
  CHECK(cache.find("/b", start) == nullptr);
}

TEST_CASE("14.3 after its time it is looked at again", "[14.3]") {
  file_cache cache{{.fresh_ms = 100ms}};
  put(cache, "/a", 10);
  UNSCOPED_INFO("fresh_ms have gone by: whoever changed the file sees the old one forever");
  CHECK(cache.find("/a", start + 100ms) == nullptr);
  UNSCOPED_INFO("nobody checks it yet: begin_check() sets is_being_checked, and find() must not");
  CHECK(cache.find("/a", start + 100ms) == nullptr);
  file_cache always{{.fresh_ms = 0ms}};
  put(always, "/a", 10);
  UNSCOPED_INFO("with fresh_ms of 0 each request looks at the disk");
  CHECK(always.find("/a", start) == nullptr);
}

TEST_CASE("14.3 to be used makes a file no fresher", "[14.3]") {
  file_cache cache{{.fresh_ms = 100ms}};
  put(cache, "/a", 10);
  CHECK(cache.find("/a", start + 60ms) != nullptr);
  UNSCOPED_INFO("only a look at the disk makes a file fresh: find() leaves `checked` as it is");
  CHECK(cache.find("/a", start + 100ms) == nullptr);
}

TEST_CASE("14.3 while one request looks at the disk, others get what is here", "[14.3]") {
  file_cache cache{{.fresh_ms = 100ms}};
  put(cache, "/a", 10);
  {
    const file_cache::check check = cache.begin_check("/a");
    UNSCOPED_INFO("a disk that is slow delays all clients of a file, and not one of them");
    CHECK(cache.find("/a", start + 1h) != nullptr);
  }
  UNSCOPED_INFO("the look has ended without news: the next request looks again");
  CHECK(cache.find("/a", start + 1h) == nullptr);
}

TEST_CASE("14.3 a file that has not changed is fresh again", "[14.3]") {
  file_cache cache{{.fresh_ms = 100ms}};
  put(cache, "/a", 10);
  const file_facts same = (*cache.find("/a", start))->facts;
  CHECK(cache.begin_check("/a").confirm(same, start + 200ms) != nullptr);
  CHECK(cache.find("/a", start + 299ms) != nullptr);
  const file_facts other{.bytes = 10, .modified_s = 2};
  UNSCOPED_INFO("another version was found: what is here is old");
  CHECK(cache.begin_check("/a").confirm(other, start + 200ms) == nullptr);
}

TEST_CASE("14.3 the files that were used last stay", "[14.3]") {
  file_cache cache{{.bytes_max = room_for(3)}};
  for (const char* const path : {"/1", "/2", "/3"}) put(cache, path, 1000);
  (void)cache.find("/1", start);  // so that "/2" is the longest unused
  put(cache, "/4", 1000);
  UNSCOPED_INFO("there is room for three: the longest unused had to go");
  CHECK(cache.find("/2", start) == nullptr);
  UNSCOPED_INFO(
      "find() has to make a file the last of by_use_, or the order is that of arrival: "
      "unlink() takes it from its place, and push_back() puts it at the end");
  CHECK(cache.find("/1", start) != nullptr);
  CHECK(cache.find("/3", start) != nullptr);
  CHECK(cache.find("/4", start) != nullptr);
}

TEST_CASE("14.3 a file that is used while it is looked at is used like any other", "[14.3]") {
  file_cache cache{{.bytes_max = room_for(2), .fresh_ms = 100ms}};
  put(cache, "/a", 1000);
  put(cache, "/b", 1000);
  const file_cache::check slow = cache.begin_check("/a");
  CHECK(cache.find("/a", start + 1h) != nullptr);
  put(cache, "/c", 1000);
  UNSCOPED_INFO("to be sent while another request checks is a use as well: last of by_use_");
  CHECK(cache.find("/a", start + 1h) != nullptr);
  CHECK(cache.find("/b", start) == nullptr);
}

TEST_CASE("14.3 a file that is old when it is asked for is used like any other", "[14.3]") {
  file_cache cache{{.bytes_max = room_for(2), .fresh_ms = 100ms}};
  put(cache, "/a", 1000);
  put(cache, "/b", 1000);
  CHECK(cache.find("/a", start + 1h) == nullptr);
  CHECK(cache.begin_check("/a").confirm(a_file(1000)->facts, start + 1h) != nullptr);
  put(cache, "/c", 1000, start + 1h);
  UNSCOPED_INFO("the file in use is thrown out: find() moves it in by_use_ even if it gives null");
  CHECK(cache.find("/a", start + 1h) != nullptr);
  CHECK(cache.find("/b", start) == nullptr);
}

TEST_CASE("14.3 it holds what fits, and not a byte more", "[14.3]") {
  const std::size_t room = room_for(3);
  file_cache cache{{.bytes_max = room}};
  for (const char* const path : {"/1", "/2", "/3"}) put(cache, path, 1000);
  UNSCOPED_INFO("three fit exactly: at the limit nothing has to go");
  CHECK(cache.size() == 3);
  put(cache, "/2", 1001);
  UNSCOPED_INFO("one byte more than there is room for");
  CHECK(cache.size() == 2);
  CHECK(cache.bytes() <= room);
  UNSCOPED_INFO(
      "bytes() is not the cost of the two that are left: drop() subtracts what it drops, so "
      "make_room() must not");
  CHECK(cache.bytes() == room_for(2) + 1);
}

TEST_CASE("14.3 a large file drives out as many as it takes", "[14.3]") {
  const std::size_t room = room_for(4);
  file_cache cache{{.bytes_max = room}};
  for (const char* const path : {"/1", "/2", "/3", "/4"}) put(cache, path, 1000);
  put(cache, "/5", 2000);
  UNSCOPED_INFO("one that goes is not enough: until all fit");
  CHECK(cache.bytes() <= room);
  CHECK(cache.find("/5", start) != nullptr);
  CHECK(cache.find("/4", start) != nullptr);
}

TEST_CASE("14 a file that alone is too large is not kept, and drives nobody out", "[14]") {
  file_cache cache{{.bytes_max = room_for(2)}};
  put(cache, "/1", 1000);
  put(cache, "/2", 100'000);
  CHECK(cache.size() == 1);
}

TEST_CASE("14 a file that has gone is dropped", "[14]") {
  file_cache cache{{.bytes_max = room_for(2)}};
  put(cache, "/1", 1000);
  cache.begin_check("/1").drop();
  CHECK(cache.size() == 0);
  CHECK(cache.bytes() == 0);
}
