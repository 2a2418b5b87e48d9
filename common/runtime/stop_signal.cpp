// SPDX-License-Identifier: MIT
#include "stop_signal.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <array>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <cstdint>

#include "errors.hpp"

namespace common {
namespace {

constexpr std::array stop_signals{SIGINT, SIGTERM};

// A handler has no argument of ours, so the descriptor has to be global.
std::atomic<int> signaled_fd = -1;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not take a lock");

void raise_flag(int fd) noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd, &one, sizeof one);
}

void set_handlers(void (*handler)(int)) {
  struct ::sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (const int each : stop_signals) ::sigaction(each, &action, nullptr);
}

void on_signal(int) {
  const int saved_errno = errno;
  set_handlers(SIG_DFL);
  raise_flag(signaled_fd);
  errno = saved_errno;
}

}  // namespace

stop_signal::stop_signal() : fd_{check(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")} {
  assert(signaled_fd == -1 && "a process has one stop_signal");
  signaled_fd = fd();
  set_handlers(&on_signal);
}

stop_signal::~stop_signal() {
  set_handlers(SIG_DFL);
  signaled_fd = -1;
}

void stop_signal::wait() const {
  ::pollfd stop{.fd = fd(), .events = POLLIN, .revents = 0};
  while (::poll(&stop, 1, -1) == -1) {
    if (errno != EINTR) throw_errno("poll for a stop signal");
  }
}

void stop_signal::request() const noexcept {
  raise_flag(fd());
}

stop_signals_blocked::stop_signals_blocked() {
  ::sigset_t all{};
  ::sigemptyset(&all);
  for (const int each : stop_signals) ::sigaddset(&all, each);
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &all, &before_); error != 0) {
    throw_error(error, "pthread_sigmask");
  }
}

stop_signals_blocked::~stop_signals_blocked() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace common
