// SPDX-License-Identifier: MIT
// What a completion says about itself: which operation it ends, and for which connection.
// Owns     nothing.
// Lifetime none: a value of 64 bits.
// Threads  any.
// Errors   none.
// Rule     a descriptor's number never stands in user_data: the kernel gives it to the next client
//          as soon as it is free, and a late completion would be taken for that client's.
// See      io_uring_sqe_set_data64(3)
#pragma once

#include <cstdint>

#include "todo.hpp"

namespace uring {

enum class operation : std::uint8_t { accept, recv, send, stop_poll, cancel };

// A place in a slot_table, and which of its tenants is meant.
struct slot_id {
  static constexpr std::uint32_t index_max = (1U << 24) - 1;  // 24 bits in user_data

  std::uint32_t index = 0;
  std::uint32_t generation = 0;  // how many tenants the slot had before

  friend bool operator==(const slot_id&, const slot_id&) = default;
};

struct tag {
  operation what = operation::accept;
  slot_id whose;  // of recv and send; the others belong to the server

  friend bool operator==(const tag&, const tag&) = default;
};

// One word, from the top: 8 bits operation, 24 bits slot index, 32 bits generation.
[[nodiscard]] inline std::uint64_t pack(const tag& from) {
  // --8<-- [start:task-05-1]
  return std::uint64_t{static_cast<std::uint8_t>(from.what)} << 56 |
         std::uint64_t{from.whose.index} << 32 | from.whose.generation;
  // --8<-- [end:task-05-1]
}

// The same, backwards: unpack(pack(t)) == t for every t whose index is at most index_max.
[[nodiscard]] inline tag unpack(std::uint64_t user_data) {
  // --8<-- [start:task-05-1b]
  return {static_cast<operation>(user_data >> 56),
          {static_cast<std::uint32_t>(user_data >> 32) & slot_id::index_max,
           static_cast<std::uint32_t>(user_data)}};
  // --8<-- [end:task-05-1b]
}

}  // namespace uring
