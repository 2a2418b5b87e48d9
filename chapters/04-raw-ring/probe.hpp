// SPDX-License-Identifier: MIT
// Asks the kernel which operations it supports, instead of guessing from the kernel's version.
// Owns     the kernel's answer, by value.
// Errors   ask() throws refused. A kernel before 5.6 has no probe, and returns EINVAL.
// Rule     the kernel may support an operation, but not all of its flags. Only a trial shows
//          which flags work: ./course doctor tries them.
// See      io_uring_register(2) IORING_REGISTER_PROBE
#pragma once

#include <array>
#include <cstddef>

#include "refused.hpp"
#include "ring_abi.hpp"
#include "system_calls.hpp"
#include "todo.hpp"

namespace uring {

// struct io_uring_probe ends in an array without a length. A probe_answer has room for 256 entries.
class probe_answer {
 public:
  static constexpr unsigned opcodes_max = 256;  // an opcode is a byte

  [[nodiscard]] ::io_uring_probe& get() noexcept {
    return *reinterpret_cast<::io_uring_probe*>(bytes_.data());
  }
  [[nodiscard]] const ::io_uring_probe& get() const noexcept {
    return *reinterpret_cast<const ::io_uring_probe*>(bytes_.data());
  }

 private:
  alignas(::io_uring_probe) std::array<
      std::byte, sizeof(::io_uring_probe) + opcodes_max * sizeof(::io_uring_probe_op)> bytes_{};
};

// Calls register_with(ring_fd, IORING_REGISTER_PROBE, address, count), and returns the kernel's
// answer. The address is that of the answer's io_uring_probe, which must be all zeros, as in a new
// probe_answer. The count is the number of entries (not of bytes) for which the answer has room:
// opcodes_max. If the result is negative, throws refused{"io_uring_register PROBE", result}.
[[nodiscard]] inline probe_answer ask(int ring_fd) {
  COURSE_TODO("04.2");
}

// Returns whether the kernel supports this operation. In the answer's io_uring_probe, ops[opcode]
// is the entry for `opcode`, but the kernel has filled in only the first `ops_len` entries. In the
// entry of a supported operation, `flags` has IO_URING_OP_SUPPORTED.
[[nodiscard]] inline bool knows(const probe_answer& answer, unsigned opcode) noexcept {
  COURSE_TODO("04.2");
}

}  // namespace uring
