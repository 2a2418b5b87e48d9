// SPDX-License-Identifier: MIT
// Few buffers, many clients: everybody gets their own bytes, and every buffer comes home.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <chrono>
#include <cstddef>
#include <random>

#include "bytes.hpp"
#include "client.hpp"
#include "pool_server.hpp"
#include "pool_service.hpp"
#include "ring_modes.hpp"
#include "stalled_client.hpp"

using namespace std::chrono_literals;
using course_test::client;
using course_test::compare_all;
using course_test::connect_many;
using course_test::echo_all;
using course_test::identical;
using course_test::pool_service;
using course_test::random_messages;

TEST_CASE("09 four buffers and two hundred clients: every byte comes back to its owner", "[09]") {
  const std::size_t mode = GENERATE(range(std::size_t{0}, course_test::all_rings.size()));
  INFO("ring " << mode << " of course_test::all_rings");
  pool_service service{
      uring::serve_from_pool, course_test::all_rings[mode], {.count = 4, .bytes = 256}};
  std::mt19937 random{static_cast<unsigned>(mode)};
  {
    auto crowd = connect_many(service.port(), 200);
    for (int round = 0; round < 10; ++round) {
      const auto messages = random_messages(crowd.size(), random);
      UNSCOPED_INFO(
          "a reply that is missing: a client starves; another's bytes: a buffer in two "
          "places");
      REQUIRE(compare_all(echo_all(crowd, messages, 30s), messages) == identical);
    }
  }
  UNSCOPED_INFO("a buffer has not come home");
  CHECK(service.lent_at_end() == 0);
}

TEST_CASE("09 clients that reset and leave at any moment take no buffer along", "[09]") {
  const std::size_t mode = GENERATE(range(std::size_t{0}, course_test::all_rings.size()));
  INFO("ring " << mode << " of course_test::all_rings");
  pool_service service{
      uring::serve_from_pool, course_test::all_rings[mode], {.count = 4, .bytes = 256}};
  std::mt19937 random{static_cast<unsigned>(mode)};
  {
    auto staying = connect_many(service.port(), 20);
    for (int round = 0; round < 10; ++round) {
      auto leaving = connect_many(service.port(), 40);
      for (auto& client : leaving) {
        (void)client.send_some(course_test::pattern(90'000, 1 + random() % 4000));
        if (random() % 3 == 0) client.reset();
        if (random() % 3 == 0) client.close();
      }
      const auto messages = random_messages(staying.size(), random);
      REQUIRE(compare_all(echo_all(staying, messages, 30s), messages) == identical);
    }
  }
  CHECK(service.lent_at_end() == 0);
}

TEST_CASE("09.4 a client that does not read its echo holds no buffer", "[09.4]") {
  pool_service service{uring::serve_from_pool, {}, {.count = 1, .bytes = 4096}};
  client stalled{service.port(), course_test::short_send_buffers};
  client other{service.port()};
  (void)course_test::send_until_stalled(stalled, 2 * course_test::kernel_buffer_bytes_max());
  UNSCOPED_INFO(
      "the only buffer waits with the rest of an echo: copy the rest, and return the "
      "buffer before the wait");
  CHECK_NOTHROW(other.echo("is there a buffer for me?"));
  stalled.reset();
  CHECK(service.lent_at_end() == 0);
}
