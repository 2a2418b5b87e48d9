// SPDX-License-Identifier: MIT
// A program of the course as a child: started without a shell, watched, and never left behind.
// Owns     the child (killed with its process group and reaped), and what it printed.
// Lifetime the child ends with this object at the latest, and with the test program if that dies.
// Threads  one thread calls; a second one inside only collects the child's output.
// Errors   std::system_error if the program cannot be started; its end is a value, exit_status.
// Rule     every wait takes a deadline. When a test case fails, child_report.cpp prints what its
//          children have printed and how they ended; the test need not do anything for that.
// See      fork(2), prctl(2) PR_SET_PDEATHSIG
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exit_status.hpp"

namespace course_test {

using std::chrono::milliseconds;

// bin/01-server of this build: the folder is $COURSE_PROGRAM_DIR, or else where CMake put it.
[[nodiscard]] std::filesystem::path program(const std::string& name);

struct child_options {
  std::optional<unsigned> fd_limit = {};      // RLIMIT_NOFILE; else as many as the system allows us
  std::vector<std::string> environment = {};  // "NAME=value", added to ours
};

class child_process {
 public:
  static constexpr milliseconds kill_deadline{2000};

  child_process(const std::filesystem::path& path, const std::vector<std::string>& arguments,
                const child_options& options = {});
  child_process(child_process&&) noexcept;
  child_process& operator=(child_process&&) = delete;
  ~child_process();  // SIGTERM, kill_deadline, SIGKILL to the group, waitpid

  [[nodiscard]] ::pid_t pid() const noexcept;
  [[nodiscard]] bool alive();
  void send_signal(int signal);  // nothing happens if the child has ended

  // exit_status::running() if it is still there at the deadline.
  [[nodiscard]] exit_status wait_for_exit(milliseconds deadline);

  // What it has printed so far, up to captured_output::bytes_max. After its end: all of it.
  [[nodiscard]] std::string stdout_text() const;
  [[nodiscard]] std::string stderr_text() const;

  // One sentence for a message: its name, pid, and whether it lives or how it ended.
  [[nodiscard]] std::string describe();
  void leave_out_of_report() noexcept;  // for a test whose own message says it already

 private:
  struct state;
  std::shared_ptr<state> state_;  // shared with the report on failed tests
};

struct finished_program {
  exit_status status;
  std::string stdout_text;
  std::string stderr_text;
};

// Runs a program to its end, such as `01-client`. At the deadline it is killed, and the status says
// so.
[[nodiscard]] finished_program run_program(const std::filesystem::path& path,
                                           const std::vector<std::string>& arguments,
                                           milliseconds deadline = milliseconds{10000},
                                           const child_options& options = {});

}  // namespace course_test
