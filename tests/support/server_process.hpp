// SPDX-License-Identifier: MIT
// A server of the course as a child on a port of the kernel's choice.
// Owns     the child process; see child_process.hpp.
// Lifetime the constructor returns once the server has announced its port; the destructor stops it.
// Threads  one thread calls.
// Errors   the constructor throws std::runtime_error if the server does not announce itself within
//          the deadline: with how it ended, what it printed, and what that usually means.
// Rule     `--host 127.0.0.1 --port 0` comes first, then `arguments`, so that a test may override.
#pragma once

#include <signal.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "child_process.hpp"

namespace course_test {

class server_process {
 public:
  static constexpr milliseconds start_deadline{10000};
  static constexpr milliseconds stop_deadline{3000};

  explicit server_process(const std::filesystem::path& path,
                          const std::vector<std::string>& arguments = {},
                          const child_options& options = {});

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] ::pid_t pid() const noexcept { return child_.pid(); }
  [[nodiscard]] bool alive() { return child_.alive(); }
  [[nodiscard]] std::string describe() { return child_.describe(); }

  void send_signal(int signal) { child_.send_signal(signal); }
  [[nodiscard]] exit_status wait_for_exit(milliseconds deadline) {
    return child_.wait_for_exit(deadline);
  }
  // Both in one: CHECK(server.stop() == exited(0)).
  [[nodiscard]] exit_status stop(int signal = SIGTERM, milliseconds deadline = stop_deadline);

  [[nodiscard]] std::string stdout_text() const { return child_.stdout_text(); }
  [[nodiscard]] std::string stderr_text() const { return child_.stderr_text(); }

  // What it holds and has used: see process_counts.hpp.
  [[nodiscard]] std::size_t open_fd_count() const;
  [[nodiscard]] std::size_t resident_bytes() const;
  [[nodiscard]] std::size_t thread_count() const;
  [[nodiscard]] std::size_t context_switches() const;
  [[nodiscard]] std::chrono::microseconds cpu_time() const;

 private:
  child_process child_;
  std::uint16_t port_ = 0;
};

}  // namespace course_test
