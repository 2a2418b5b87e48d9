// SPDX-License-Identifier: MIT
// As many bytes as no 32-bit length can name. None of them takes memory until it is written to.
// Owns     the mapping.
// Lifetime as long as its bytes are used.
// Errors   std::system_error if there is no address space for it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <span>

#include "errors.hpp"

namespace course_test {

class large_span {
 public:
  static constexpr std::size_t size = std::size_t{1} << 32U;

  large_span() {
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, how, -1, 0);
    if (mapped == MAP_FAILED) common::throw_errno("mmap");
    begin_ = static_cast<std::byte*>(mapped);
  }
  large_span(large_span&&) = delete;
  ~large_span() { ::munmap(begin_, size); }

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {begin_, size}; }

 private:
  std::byte* begin_;
};

}  // namespace course_test
