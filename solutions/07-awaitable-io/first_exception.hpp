// SPDX-License-Identifier: MIT
// Makes calls that may throw, and keeps the first exception, so that the later calls are made, too.
// Owns     the exception, until rethrow() throws it.
// Threads  one.
#pragma once

#include <exception>
#include <utility>

namespace uring {

class first_exception {
 public:
  template <typename Call>
  void keep(const Call& call) noexcept {
    try {
      call();
    } catch (...) {
      if (kept_ == nullptr) kept_ = std::current_exception();
    }
  }

  void rethrow() {
    if (kept_ != nullptr) std::rethrow_exception(std::exchange(kept_, nullptr));
  }

 private:
  std::exception_ptr kept_;
};

}  // namespace uring
