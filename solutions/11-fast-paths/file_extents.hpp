// SPDX-License-Identifier: MIT
// The parts of a file that hold data, one after the other. Between them a sparse file has holes,
// which hold no data and are not copied.
// Lifetime the descriptor must outlive it.
// Threads  one at a time.
// Errors   none: on a file system that does not report holes, all of the file is data.
// See      lseek(2): SEEK_DATA, SEEK_HOLE
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>

namespace uring {

// The bytes of a file from `begin` up to `end`.
struct extent {
  std::uint64_t begin;
  std::uint64_t end;

  [[nodiscard]] std::uint64_t bytes() const noexcept { return end - begin; }
};

class file_extents {
 public:
  // The extents of the first `size` bytes, in pieces of at most `bytes_max`.
  file_extents(int fd, std::uint64_t size, std::uint64_t bytes_max) noexcept
      : fd_{fd}, size_{size}, bytes_max_{bytes_max} {}

  [[nodiscard]] std::optional<extent> next() noexcept {
    if (at_ == data_end_) find_data();
    if (at_ == size_) return std::nullopt;
    const std::uint64_t begin = at_;
    at_ += std::min(bytes_max_, data_end_ - begin);
    return extent{begin, at_};
  }

 private:
  // Finds where the next data at or after at_ begins, and where it ends.
  void find_data() noexcept {
    if (at_ == size_) return;
    const ::off_t begin = ::lseek(fd_, static_cast<::off_t>(at_), SEEK_DATA);
    if (begin < 0 && errno == ENXIO) {  // a hole up to the end
      at_ = data_end_ = size_;
      return;
    }
    if (begin >= 0) at_ = std::min(static_cast<std::uint64_t>(begin), size_);
    const ::off_t end = begin < 0 ? begin : ::lseek(fd_, begin, SEEK_HOLE);
    data_end_ = end < 0 ? size_ : std::min(static_cast<std::uint64_t>(end), size_);
  }

  int fd_;
  std::uint64_t size_;
  std::uint64_t bytes_max_;
  std::uint64_t at_ = 0;
  std::uint64_t data_end_ = 0;
};

}  // namespace uring
