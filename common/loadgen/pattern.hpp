// SPDX-License-Identifier: MIT
// What the echo clients send: pseudo-random bytes, a different stretch for every connection.
// Owns     nothing; make_pattern() gives the table away.
// Errors   std::bad_alloc.
// Rule     a byte that is lost, doubled, changed, moved or from another client differs from the one
//          expected there, except by chance (1 in 256 for a byte) or a shift by a whole period.
#pragma once

#include <cstddef>

#include "byte_loop.hpp"

namespace loadgen {

// The period is prime, so that no size of message repeats its bytes before a whole period. Every
// connection has a place of its own to start at, and the period is no longer than that takes: a
// table of 1 MiB, too large for a fast cache, cost 1 % more CPU time a request than one of 16 KiB.
[[nodiscard]] constexpr std::size_t pattern_period(std::size_t connections) noexcept {
  constexpr std::size_t in_first_level_cache = 16'381;
  constexpr std::size_t for_every_port = 65'521;
  return connections <= in_first_level_cache / 2 ? in_first_level_cache : for_every_port;
}

[[nodiscard]] byte_loop make_pattern(std::size_t connections);

// Where connection number `connection` starts. Neighbors start far apart, so that equally busy
// clients stay far apart, too.
[[nodiscard]] constexpr std::size_t pattern_start(std::size_t connection,
                                                  std::size_t period) noexcept {
  const std::size_t golden_stride = period * 618 / 1000;
  return connection * golden_stride % period;
}

}  // namespace loadgen
