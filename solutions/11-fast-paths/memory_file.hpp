// SPDX-License-Identifier: MIT
// Makes a file in memory that holds a text.
// Owns     nothing: the caller owns the returned descriptor.
// Errors   std::system_error.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string_view>

#include "errors.hpp"
#include "unique_fd.hpp"

namespace uring {

[[nodiscard]] inline common::unique_fd file_with(std::string_view text) {
  common::unique_fd file{common::check(::memfd_create("answers", MFD_CLOEXEC), "memfd_create")};
  common::check(::write(file.get(), text.data(), text.size()), "write");
  return file;
}

}  // namespace uring
