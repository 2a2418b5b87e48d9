// SPDX-License-Identifier: MIT
// What user_data points at from here on: a function for the completion, and the word it needs.
// Owns     nothing.
// Lifetime from the submission to the last completion (the one without IORING_CQE_F_MORE) it must
//          stay where it is: the kernel holds its address.
// Threads  the one that runs the io_context.
// Errors   none.
// Rule     never a descriptor in user_data: its number is reused. An object in flight is not.
#pragma once

#include "ring.hpp"

namespace uring {

class io_operation {
 public:
  // Called once for each completion. What it resumes may destroy `self`.
  using function = void(io_operation& self, const completion& done);

  explicit io_operation(function* on_completion) noexcept : on_completion_{on_completion} {}
  io_operation(io_operation&&) = delete;  // the kernel holds our address

  void complete(const completion& done) { on_completion_(*this, done); }

 private:
  function* on_completion_;
};

}  // namespace uring
