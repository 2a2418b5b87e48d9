// SPDX-License-Identifier: MIT
// How a child process ended, as a value that a failed CHECK prints in words.
// See      waitpid(2)
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>

namespace course_test {

class exit_status {
 public:
  enum class kind { exited, killed, still_running };

  [[nodiscard]] static exit_status from_wait_status(int wait_status) noexcept;
  [[nodiscard]] static exit_status running() noexcept { return {kind::still_running, 0}; }

  // "exited with status 1", "was killed by signal 11 (SIGSEGV, Segmentation fault)", ...
  [[nodiscard]] std::string describe() const;

  [[nodiscard]] kind how() const noexcept { return how_; }
  [[nodiscard]] int number() const noexcept { return number_; }  // exit status or signal

  friend bool operator==(const exit_status&, const exit_status&) = default;
  friend std::ostream& operator<<(std::ostream& out, const exit_status& status);

 private:
  exit_status(kind how, int number) noexcept : how_{how}, number_{number} {}
  friend exit_status exited(int status) noexcept;
  friend exit_status killed_by(int signal) noexcept;

  kind how_;
  int number_;
};

// What to compare with: CHECK(server.stop() == exited(0)).
[[nodiscard]] inline exit_status exited(int status) noexcept {
  return {exit_status::kind::exited, status};
}
[[nodiscard]] inline exit_status killed_by(int signal) noexcept {
  return {exit_status::kind::killed, signal};
}

}  // namespace course_test
