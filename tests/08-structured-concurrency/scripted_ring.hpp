// SPDX-License-Identifier: MIT
// A kernel that answers by script, in orders that the real one rarely gives. In this program only:
// the linker puts a function of ours before io_uring_submit_and_wait_timeout (CMakeLists.txt).
// Owns     the script, while the object lives; one at a time.
// Lifetime make it before the io_context whose ring it plays, and let it go after that.
// Threads  the one that runs the io_context. Without such an object every call is the real one.
// Errors   std::logic_error out of io_context::run() if the loop waits and the script has nothing.
// Rule     no request reaches the kernel: it is taken from the queue and handed to the script.
// See      ld(1), --wrap
#pragma once

#include <liburing.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace course_test {

struct scripted_answer {
  std::uint64_t user_data;
  std::int32_t res;
};

// What was submitted since the last turn, in order; and what completes in this one.
using script = std::function<std::vector<scripted_answer>(const std::vector<::io_uring_sqe>&)>;

class [[nodiscard]] scripted_ring {
 public:
  explicit scripted_ring(script play);
  scripted_ring(scripted_ring&&) = delete;
  ~scripted_ring();
};

}  // namespace course_test
