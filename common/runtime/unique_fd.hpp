// SPDX-License-Identifier: MIT
// A file descriptor with one owner.
// Owns     the descriptor; closes it when destroyed, assigned over or reset.
// Lifetime as long as the object; get() lends the number, release() gives it away.
// Threads  none: move it to the thread that uses it.
// Errors   none: close(2) is called once and its result dropped. On Linux the number is free even
//          when close() fails, so a retry could close a new descriptor of another owner.
// Rule     closing does not end a system call that another thread is blocked in; shutdown(2) does.
#pragma once

#include <unistd.h>

#include <utility>

namespace common {

class [[nodiscard]] unique_fd {
 public:
  unique_fd() noexcept = default;
  explicit unique_fd(int fd) noexcept : fd_{fd} {}
  unique_fd(unique_fd&& other) noexcept : fd_{other.release()} {}
  unique_fd& operator=(unique_fd other) noexcept {  // by value: one function for every assignment
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~unique_fd() {
    if (valid()) ::close(fd_);
  }

  [[nodiscard]] bool valid() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  void reset() noexcept { *this = unique_fd{}; }

 private:
  int fd_ = -1;
};

}  // namespace common
