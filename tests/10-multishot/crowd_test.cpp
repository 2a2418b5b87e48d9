// SPDX-License-Identifier: MIT
// Few buffers, many clients, one request for each: every client gets its own bytes, none starves,
// and all buffers come home.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cstddef>
#include <random>

#include "bytes.hpp"
#include "client.hpp"
#include "pool_crowd.hpp"
#include "pool_service.hpp"
#include "ring_modes.hpp"
#include "stalled_client.hpp"
#include "stream_server.hpp"

using course_test::client;
using course_test::identical;
using course_test::pool_service;
using uring::serve_from_streams;

TEST_CASE("10 four buffers and two hundred clients: every byte comes back to its owner", "[10]") {
  const std::size_t mode = GENERATE(range(std::size_t{0}, course_test::all_rings.size()));
  INFO("ring " << mode << " of course_test::all_rings");
  pool_service service{
      serve_from_streams, course_test::all_rings[mode], {.count = 4, .bytes = 256}};
  std::mt19937 random{static_cast<unsigned>(mode)};
  UNSCOPED_INFO(
      "a missing reply means that a client starves, or that a request that has ended was not armed "
      "again. Bytes in another order mean that two requests receive from one socket");
  REQUIRE(course_test::echo_to_two_hundred(service.port(), random) == identical);
  UNSCOPED_INFO("a buffer has not come home");
  CHECK(service.lent_at_end() == 0);
}

TEST_CASE("10 clients that reset and leave at any moment take no buffer along", "[10]") {
  const std::size_t mode = GENERATE(range(std::size_t{0}, course_test::all_rings.size()));
  INFO("ring " << mode << " of course_test::all_rings");
  pool_service service{
      serve_from_streams, course_test::all_rings[mode], {.count = 4, .bytes = 256}};
  std::mt19937 random{static_cast<unsigned>(mode)};
  REQUIRE(course_test::echo_beside_leavers(service.port(), random) == identical);
  CHECK(service.lent_at_end() == 0);
}

TEST_CASE("10.5 a client that does not read leaves the only buffer to the others", "[10.5]") {
  pool_service service{serve_from_streams, {}, {.count = 1, .bytes = 4096}};
  client stalled{service.port(), course_test::short_send_buffers};
  client other{service.port()};
  (void)course_test::send_until_stalled(stalled, 2 * course_test::kernel_buffer_bytes_max());
  UNSCOPED_INFO(
      "the only buffer waits for a client that does not read: in the echo, or in its stream");
  CHECK_NOTHROW(other.echo("is there a buffer for me?"));
  stalled.reset();
  CHECK(service.lent_at_end() == 0);
}
