// SPDX-License-Identifier: MIT
// A process that runs out of descriptors soon: this one, for as long as the object lives.
// Owns     the process's soft limit (RLIMIT_NOFILE); the destructor sets it back.
// Lifetime make it when everything that the test itself needs is open.
// Threads  one at a time has such an object; the limit counts for all of them.
// Errors   std::system_error.
// See      getrlimit(2)
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include "errors.hpp"
#include "unique_fd.hpp"

namespace course_test {

class [[nodiscard]] room_for_descriptors {
 public:
  // From here on `more` can be opened, if none below the highest one in use is free.
  explicit room_for_descriptors(unsigned more) {
    common::check(::getrlimit(RLIMIT_NOFILE, &before_), "getrlimit");
    const common::unique_fd lowest_free{common::check(::dup(0), "dup")};
    ::rlimit limit = before_;
    limit.rlim_cur = static_cast<::rlim_t>(lowest_free.get()) + more;
    common::check(::setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
  }
  room_for_descriptors(room_for_descriptors&&) = delete;
  ~room_for_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  ::rlimit before_{};
};

}  // namespace course_test
