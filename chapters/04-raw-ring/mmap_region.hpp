// SPDX-License-Identifier: MIT
// Memory shared with the kernel: one mapping of a ring's descriptor.
// Owns     the mapping; munmap(2) when destroyed or assigned over.
// Lifetime pointers from at() are valid until the mapping is gone. The descriptor may be closed
//          earlier, because the mapping keeps the ring's memory alive.
// Threads  one at a time.
// Errors   the constructor throws std::system_error.
// See      mmap(2), io_uring_setup(2)
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "errors.hpp"

namespace uring {

class [[nodiscard]] mmap_region {
 public:
  mmap_region() noexcept = default;
  // `offset` selects a part of the ring: IORING_OFF_SQ_RING, _CQ_RING or _SQES.
  mmap_region(int ring_fd, std::uint64_t offset, std::size_t bytes) : bytes_{bytes} {
    constexpr int access = PROT_READ | PROT_WRITE;
    constexpr int kind = MAP_SHARED | MAP_POPULATE;  // no page fault at the first use
    start_ = ::mmap(nullptr, bytes, access, kind, ring_fd, static_cast<::off_t>(offset));
    if (start_ == MAP_FAILED) common::throw_errno("mmap of the ring");
  }
  mmap_region(mmap_region&& other) noexcept
      : start_{std::exchange(other.start_, nullptr)}, bytes_{std::exchange(other.bytes_, 0)} {}
  mmap_region& operator=(mmap_region other) noexcept {
    std::swap(start_, other.start_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~mmap_region() {
    if (valid()) ::munmap(start_, bytes_);
  }

  [[nodiscard]] bool valid() const noexcept { return start_ != nullptr; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  // Returns a pointer to the T that lies `offset` bytes from the start of the mapping.
  template <typename T>
  [[nodiscard]] T* at(std::uint32_t offset) const noexcept {
    return reinterpret_cast<T*>(static_cast<std::byte*>(start_) + offset);
  }

 private:
  void* start_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace uring
