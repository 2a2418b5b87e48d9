// SPDX-License-Identifier: MIT
// Reads a file by a descriptor or by its slot.
// Threads  the one that runs the context.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "bytes.hpp"
#include "file_operations.hpp"
#include "io_context.hpp"
#include "io_request.hpp"
#include "registered_files.hpp"
#include "task.hpp"

namespace course_test {

// The file's text, or how the read failed: "error 9".
inline uring::task<std::string> read_file(uring::io_context& context, uring::file_ref file) {
  std::array<std::byte, 64> buffer;
  const uring::io_result read =
      co_await uring::with_flags(uring::read_op(context, file.number, buffer, 0), file.flags);
  if (!read) co_return "error " + std::to_string(read.error());
  co_return text_of(std::span{buffer}.first(read.count()));
}

[[nodiscard]] inline std::string text_in(uring::io_context& context, const uring::file_slot& slot) {
  return context.run(read_file(context, uring::file_of(slot, -1)));
}

}  // namespace course_test
