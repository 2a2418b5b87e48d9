// SPDX-License-Identifier: MIT
// Which descriptors of this process were opened since, and are still open.
// Owns     nothing but a list of numbers.
// Lifetime make it before what is tested, ask it after.
// Threads  none: other threads that open descriptors meanwhile would be blamed.
#pragma once

#include <map>
#include <string>

namespace course_test {

// const fd_scope fds; { … } CHECK(fds.leaked() == "");
class [[nodiscard]] fd_scope {
 public:
  fd_scope();

  // "" or a line for each: "fd 7 is still open: socket:[123]".
  [[nodiscard]] std::string leaked() const;

 private:
  std::map<int, std::string> open_before_;
};

}  // namespace course_test
