// SPDX-License-Identifier: MIT
// Runs a piece of a test in a process of its own, for what must end one: an assert.
// Owns     the child, until it has ended.
// Lifetime returns when it has.
// Threads  call it while the test has no other thread.
// Errors   std::system_error.
// See      fork(2), alarm(2)
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>

#include "errors.hpp"
#include "exit_status.hpp"
#include "unique_fd.hpp"

namespace course_test {

struct ending_process {
  exit_status status = exit_status::running();
  std::string stderr_text;
};

inline ending_process run_to_its_end(const std::function<void()>& work) {
  constexpr unsigned seconds_max = 10;
  std::array<int, 2> ends{};
  common::check(::pipe(ends.data()), "pipe");
  common::unique_fd reader{ends[0]};
  common::unique_fd writer{ends[1]};
  const ::pid_t child = common::check(::fork(), "fork");
  if (child == 0) {
    ::signal(SIGABRT, SIG_DFL);  // Catch2's handler would make a report of it
    ::alarm(seconds_max);
    ::dup2(writer.get(), STDERR_FILENO);
    try {
      work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::_Exit(1);
    }
    std::_Exit(0);
  }
  writer.reset();
  ending_process ended;
  std::array<char, 4096> buffer;
  for (::ssize_t got = 1; got > 0;) {
    got = ::read(reader.get(), buffer.data(), buffer.size());
    if (got > 0) ended.stderr_text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  int status = 0;
  common::check(::waitpid(child, &status, 0), "waitpid");
  ended.status = exit_status::from_wait_status(status);
  return ended;
}

}  // namespace course_test
