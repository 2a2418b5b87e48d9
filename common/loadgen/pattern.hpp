// SPDX-License-Identifier: MIT
// What the echo clients send: pseudo-random bytes, a different stretch for every connection.
// Owns     nothing; make_pattern() gives the table away.
// Lifetime none.
// Threads  any.
// Errors   std::bad_alloc.
// Rule     a byte that is lost, doubled, changed, moved or another client's differs from the one
//          expected in its place, but for chance (1 in 256 a byte) or a shift by a whole period.
#pragma once

#include <cstddef>

#include "byte_loop.hpp"

namespace loadgen {

// Prime, so that no size of message ever meets the same bytes again before a whole period.
constexpr std::size_t pattern_period = 65'521;

[[nodiscard]] byte_loop make_pattern();

// Where connection number `connection` starts. No two of up to pattern_period connections start at
// the same place, and neighbors start far apart: equally busy clients stay far apart, too.
[[nodiscard]] constexpr std::size_t pattern_start(std::size_t connection) noexcept {
  constexpr std::size_t golden_stride = 40'494;  // 0.618 of the period
  return connection % pattern_period * golden_stride % pattern_period;
}

}  // namespace loadgen
