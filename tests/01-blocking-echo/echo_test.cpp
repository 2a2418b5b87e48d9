// SPDX-License-Identifier: MIT
#include "listener.hpp"

#include <catch2/catch_test_macros.hpp>

TEST_CASE("01.1 a listener on port 0 is given a port", "[01.1]") {
  const auto listener = blocking::open_listener("127.0.0.1", 0);
  CHECK(listener.valid());
}
