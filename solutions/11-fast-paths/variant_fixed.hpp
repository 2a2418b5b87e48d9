// SPDX-License-Identifier: MIT
// The fixed kind: READ_FIXED and WRITE_FIXED, in buffers whose pages the kernel has pinned once.
// Owns     the memory of all buffers, registered as one buffer.
// Lifetime it must outlive every client, and the queue must outlive it.
// Threads  the one that runs the queue.
// Errors   std::system_error if the memory cannot be registered: ENOMEM beyond RLIMIT_MEMLOCK.
// Rule     a client for which no registered buffer is left gets the plain echo.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "buffer_pool.hpp"
#include "file_operations.hpp"
#include "io_queue.hpp"
#include "registered_buffers.hpp"
#include "scope_exit.hpp"
#include "task.hpp"
#include "variant_client.hpp"
#include "variant_kinds.hpp"

namespace uring {

class fixed_places {
 public:
  static constexpr std::uint8_t file_flags = 0;

  fixed_places(io_queue& queue, const buffer_options& options)
      : own{queue, options},
        memory_(options.count * options.bytes),
        registered_{queue, std::array{std::span<std::byte>{memory_}}} {
    for (std::size_t at = 0; at < memory_.size(); at += options.bytes) free_.push_back(at);
  }

  [[nodiscard]] bool empty() const noexcept { return free_.empty(); }

  [[nodiscard]] std::span<std::byte> take() {
    const std::size_t at = free_.back();
    free_.pop_back();
    return std::span{memory_}.subspan(at, own.bytes);
  }
  void give_back(std::span<std::byte> place) noexcept {
    free_.push_back(static_cast<std::size_t>(place.data() - memory_.data()));
  }

  own_buffers own;

 private:
  std::vector<std::byte> memory_;
  registered_buffers registered_;
  std::vector<std::size_t> free_;
};

inline auto read_fixed(const variant_client& client, std::span<std::byte> into) {
  return read_fixed_op(client.waiting, client.socket(), {.bytes = into, .index = 0});
}

inline auto write_fixed(const variant_client& client, std::span<std::byte> data) {
  return write_fixed_op(client.given_up, client.socket(), {.bytes = data, .index = 0});
}

inline task<> echo_fixed(variant_client client, fixed_places& places) {
  if (places.empty()) {
    co_await echo_recv_send(client, places.own);
    co_return;
  }
  const std::span<std::byte> place = places.take();
  const scope_exit leaving{[&] { places.give_back(place); }};
  co_await echo_by<read_fixed, write_fixed>(client, place);
}

}  // namespace uring
