// SPDX-License-Identifier: MIT
// A client of the laboratory: the requests in flight for it, and the bytes to be sent to it.
// Owns     the socket.
// Lifetime it lives as long as one of its requests is in flight, because the client's address is in
//          the request's user_data.
// Threads  the worker's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "buffer_supply.hpp"
#include "unique_fd.hpp"

namespace uring {

struct lab_client {
  // Bytes that are to be sent, in a buffer of the pool or in the client's own.
  struct piece {
    std::span<std::byte> bytes;
    buffer_id id;
  };

  common::unique_fd socket;
  std::vector<std::byte> own;  // the client's buffer with --one-shot; otherwise empty
  std::deque<piece> unsent;    // the first one is being sent
  bool receives = false;
  bool has_ended = false;

  [[nodiscard]] bool is_gone() const noexcept { return has_ended && !receives && unsent.empty(); }
};

enum class lab_request : std::uint64_t { accept, recv, send, stop };

// A client's address has its lowest three bits free.
[[nodiscard]] inline std::uint64_t pack(lab_client* client, lab_request what) noexcept {
  return reinterpret_cast<std::uint64_t>(client) | static_cast<std::uint64_t>(what);
}
[[nodiscard]] inline lab_client* client_in(std::uint64_t user_data) noexcept {
  return reinterpret_cast<lab_client*>(user_data & ~std::uint64_t{7});
}
[[nodiscard]] inline lab_request request_in(std::uint64_t user_data) noexcept {
  return static_cast<lab_request>(user_data & 7);
}

}  // namespace uring
