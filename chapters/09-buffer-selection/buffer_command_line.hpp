// SPDX-License-Identifier: MIT
// The flags --buffers and --buffer-size. Servers with a buffer pool take them.
// Lifetime the flag_set must not outlive it.
#pragma once

#include <cstdint>

#include "buffer_pool.hpp"
#include "flags.hpp"

namespace uring {

class buffer_command_line {
 public:
  explicit buffer_command_line(common::flag_set& flags, const buffer_options& defaults = {})
      : count_{static_cast<std::int64_t>(defaults.count)},
        bytes_{static_cast<std::int64_t>(defaults.bytes)} {
    flags.add("--buffers", count_, 1, buffers_max, "Buffers that all clients share");
    flags.add("--buffer-size", bytes_, 1, 1024 * 1024, "Bytes of each");
  }
  buffer_command_line(buffer_command_line&&) = delete;  // the flag_set holds our addresses

  [[nodiscard]] buffer_options options() const noexcept {
    return {.count = static_cast<std::size_t>(count_), .bytes = static_cast<std::size_t>(bytes_)};
  }

 private:
  std::int64_t count_;
  std::int64_t bytes_;
};

}  // namespace uring
