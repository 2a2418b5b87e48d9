// SPDX-License-Identifier: MIT
// One request of a chain that copies a file. It moves a block from the source into a buffer, or
// from the buffer to the target.
// Lifetime file and buffer must live until the request has completed.
// See      io_uring_prep_read_fixed(3)
#pragma once

#include <liburing.h>

#include <cstdint>

#include "registered_buffers.hpp"
#include "registered_files.hpp"

namespace uring {

struct copy_step {
  enum class action : std::uint8_t { read, write };

  action what;
  file_ref file;
  fixed_buffer block;  // of as many bytes as the step moves
  std::uint64_t offset;

  void operator()(::io_uring_sqe& sqe) const {
    const auto prepare = what == action::read ? prepare_read : prepare_write;
    prepare(sqe, *this);
    sqe.flags |= file.flags;
  }

 private:
  static void prepare_read(::io_uring_sqe& sqe, const copy_step& step) {
    ::io_uring_prep_read_fixed(&sqe, step.file.number, step.block.bytes.data(), step.length(),
                               step.offset, step.block.index);
  }
  static void prepare_write(::io_uring_sqe& sqe, const copy_step& step) {
    ::io_uring_prep_write_fixed(&sqe, step.file.number, step.block.bytes.data(), step.length(),
                                step.offset, step.block.index);
  }
  [[nodiscard]] unsigned length() const noexcept {
    return static_cast<unsigned>(block.bytes.size());
  }
};

}  // namespace uring
