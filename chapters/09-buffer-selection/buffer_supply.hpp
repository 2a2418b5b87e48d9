// SPDX-License-Identifier: MIT
// The kernel's side of a pool: the group of buffers from which the kernel picks one for a recv.
// Threads  the one that runs the queue.
// See      io_uring_provided_buffers(7)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace uring {

// The number of a group; SQEs name the group by it. A ring may have several groups.
using buffer_group = std::uint16_t;
// The number of a buffer within its group; completions name the buffer by it.
using buffer_id = std::uint16_t;

inline constexpr std::size_t buffers_max = 32768;  // the kernel's limit for a buffer ring

class buffer_supply {
 public:
  [[nodiscard]] virtual buffer_group group() const noexcept = 0;
  // From here on the kernel may write to `bytes`, until a completion names `id`.
  virtual void give(buffer_id id, std::span<std::byte> bytes) = 0;

 protected:
  ~buffer_supply() = default;
};

}  // namespace uring
