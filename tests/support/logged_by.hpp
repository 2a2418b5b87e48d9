// SPDX-License-Identifier: MIT
// Runs some work and returns what it writes on stderr, where common::log() writes.
// Owns     nothing; stderr is restored when it returns.
// Threads  one caller at a time. The work has a thread of its own: a seccomp filter that it
//          installs (refuse_calls.hpp) stays as long as that thread.
// Errors   throws what the work threw.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <thread>

#include "errors.hpp"
#include "unique_fd.hpp"

namespace course_test {

[[nodiscard]] inline std::string logged_by(const std::function<void()>& work) {
  const common::unique_fd log{common::check(::memfd_create("log", MFD_CLOEXEC), "memfd_create")};
  const common::unique_fd before{common::check(::dup(STDERR_FILENO), "dup")};
  common::check(::dup2(log.get(), STDERR_FILENO), "dup2");
  std::exception_ptr failure;
  std::jthread{[&] {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  }}.join();
  common::check(::dup2(before.get(), STDERR_FILENO), "dup2");
  std::string said(4096, '\0');
  said.resize(static_cast<std::size_t>(
      common::check(::pread(log.get(), said.data(), said.size(), 0), "pread")));
  // An unwritten task says on stderr where it is, and the reader must see that.
  if (failure) {
    [[maybe_unused]] const auto shown = ::write(STDERR_FILENO, said.data(), said.size());
    std::rethrow_exception(failure);
  }
  return said;
}

}  // namespace course_test
