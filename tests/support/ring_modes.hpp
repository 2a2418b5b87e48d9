// SPDX-License-Identifier: MIT
// Every way in which the course sets up a ring, tiny ones included.
#pragma once

#include <array>

#include "ring_options.hpp"

namespace course_test {

inline constexpr uring::ring_options tiny_rings{.sq_entries = 4, .cq_entries = 8};

inline constexpr std::array<uring::ring_options, 6> all_rings{{
    {.mode = uring::ring_mode::plain},
    {.mode = uring::ring_mode::coop},
    {.mode = uring::ring_mode::defer},
    {.mode = uring::ring_mode::sqpoll},
    tiny_rings,
    {.mode = uring::ring_mode::defer, .sq_entries = 4, .cq_entries = 8},
}};

}  // namespace course_test
