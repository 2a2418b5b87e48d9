// SPDX-License-Identifier: MIT
#include "fd_scope.hpp"

#include "process_counts.hpp"

namespace course_test {

fd_scope::fd_scope() : open_before_{open_fds()} {}

std::string fd_scope::leaked() const {
  std::string lines;
  for (const auto& [fd, target] : open_fds()) {
    const auto before = open_before_.find(fd);
    if (before != open_before_.end() && before->second == target) continue;
    lines += "fd " + std::to_string(fd) + " is still open: " + target + '\n';
  }
  return lines;
}

}  // namespace course_test
