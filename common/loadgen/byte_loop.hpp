// SPDX-License-Identifier: MIT
// A sequence of bytes that repeats forever, readable from any place without a copy.
// Owns     the bytes: one period, and one piece more so that no piece has to wrap around.
// Lifetime pieces stay valid as long as the object.
// Threads  any number may read; nothing changes after construction.
// Errors   std::bad_alloc.
// Rule     a position is always below period(); advance() keeps it there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace loadgen {

class byte_loop {
 public:
  static constexpr std::size_t piece_bytes_max = 256 * 1024;

  explicit byte_loop(std::vector<std::byte> period);

  [[nodiscard]] std::size_t period() const noexcept { return period_; }

  // The bytes from `position` on: `count` of them, or piece_bytes_max if that is less.
  [[nodiscard]] std::span<const std::byte> piece(std::size_t position,
                                                 std::size_t count) const noexcept {
    return std::span{bytes_}.subspan(position, std::min(count, piece_bytes_max));
  }

  // The position `count` bytes after `position`; `count` is at most one piece.
  [[nodiscard]] std::size_t advance(std::size_t position, std::size_t count) const noexcept {
    const std::size_t next = position + count;
    return next < period_ ? next : next % period_;  // a division costs more than the branch
  }

  // The place of `wanted` in the sequence, if it is there.
  [[nodiscard]] std::optional<std::size_t> find(std::span<const std::byte> wanted) const noexcept;

 private:
  std::size_t period_;
  std::vector<std::byte> bytes_;
};

}  // namespace loadgen
