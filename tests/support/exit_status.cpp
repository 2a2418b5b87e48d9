// SPDX-License-Identifier: MIT
#include "exit_status.hpp"

#include <string.h>
#include <sys/wait.h>

#include <ostream>

namespace course_test {

exit_status exit_status::from_wait_status(int wait_status) noexcept {
  if (WIFSIGNALED(wait_status)) return {kind::killed, WTERMSIG(wait_status)};
  return {kind::exited, WEXITSTATUS(wait_status)};
}

std::string exit_status::describe() const {
  const std::string number = std::to_string(number_);
  switch (how_) {
    case kind::exited:
      return "exited with status " + number;
    case kind::killed: {
      const char* const name = ::sigabbrev_np(number_);
      if (name == nullptr) return "was killed by signal " + number;
      return "was killed by signal " + number + " (SIG" + name + ", " + ::sigdescr_np(number_) +
             ")";
    }
    case kind::still_running:
      return "is still running";
  }
  return "";
}

std::ostream& operator<<(std::ostream& out, const exit_status& status) {
  return out << status.describe();
}

}  // namespace course_test
