// SPDX-License-Identifier: MIT
// From this chapter on user_data points at an io_operation, whose function gets each completion.
// Lifetime from its start to its final completion (the one without IORING_CQE_F_MORE) it must stay
//          where it is, because the kernel holds its address.
// Rule     user_data is never a descriptor, because the kernel reuses the number of a closed one.
#pragma once

#include <cerrno>
#include <cstdint>

#include "list_link.hpp"
#include "ring.hpp"

namespace uring {

// It is a list_link because a canceler keeps a list of its operations, see canceler.hpp.
class io_operation : public list_link {
 public:
  // Called once for each completion. The coroutine that it resumes may destroy `self`.
  using function = void(io_operation& self, const completion& done);

  explicit io_operation(function* on_completion) noexcept : on_completion_{on_completion} {}
  io_operation(io_operation&&) = delete;  // the kernel holds our address

  // An interrupted splice ends with ERESTARTSYS, a number for use inside the kernel only. Here it
  // is replaced by EINTR.
  void complete(completion done) {
    if (done.res == -restart_system_call) done.res = -EINTR;
    on_completion_(*this, done);
  }

 private:
  static constexpr std::int32_t restart_system_call = 512;  // no errno.h for programs has it

  function* on_completion_;
};

}  // namespace uring
