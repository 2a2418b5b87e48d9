// SPDX-License-Identifier: MIT
// Few buffers, many clients: each client gets its own bytes, and every buffer comes home.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cstddef>
#include <random>

#include "bytes.hpp"
#include "client.hpp"
#include "pool_crowd.hpp"
#include "pool_server.hpp"
#include "pool_service.hpp"
#include "ring_modes.hpp"
#include "stalled_client.hpp"

using course_test::client;
using course_test::identical;
using course_test::pool_service;

TEST_CASE("09 four buffers and two hundred clients: every byte comes back to its owner", "[09]") {
  const std::size_t mode = GENERATE(range(std::size_t{0}, course_test::all_rings.size()));
  INFO("ring " << mode << " of course_test::all_rings");
  pool_service service{
      uring::serve_from_pool, course_test::all_rings[mode], {.count = 4, .bytes = 256}};
  std::mt19937 random{static_cast<unsigned>(mode)};
  UNSCOPED_INFO(
      "a missing reply means that a client starves; another client's bytes mean that a buffer is "
      "in two places");
  REQUIRE(course_test::echo_to_two_hundred(service.port(), random) == identical);
  UNSCOPED_INFO("a buffer has not come home");
  CHECK(service.lent_at_end() == 0);
}

TEST_CASE("09 clients that reset and leave at any moment take no buffer along", "[09]") {
  const std::size_t mode = GENERATE(range(std::size_t{0}, course_test::all_rings.size()));
  INFO("ring " << mode << " of course_test::all_rings");
  pool_service service{
      uring::serve_from_pool, course_test::all_rings[mode], {.count = 4, .bytes = 256}};
  std::mt19937 random{static_cast<unsigned>(mode)};
  REQUIRE(course_test::echo_beside_leavers(service.port(), random) == identical);
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
