// SPDX-License-Identifier: MIT
// SIGINT and SIGTERM as a readable descriptor, so that a server stops between two requests.
// Owns     an eventfd and the process's handlers for the two signals; one object a process.
// Lifetime make it before the first client is served; the handlers stay until it is destroyed.
// Threads  fd(), wait() and request(): any.
// Errors   the constructor throws std::system_error.
// Rule     a second signal ends the process at once, because the first restores the default action.
// See      eventfd(2), signal-safety(7), pthread_sigmask(3)
#pragma once

#include <signal.h>

#include "unique_fd.hpp"

namespace common {

class stop_signal {
 public:
  stop_signal();
  stop_signal(stop_signal&&) = delete;  // the handlers know the descriptor
  ~stop_signal();

  // Readable from the first stop on, for good. Poll it, or submit a poll for it; do not read it.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  // Blocks until a stop was asked for.
  void wait() const;

  // Asks for a stop from inside the process.
  void request() const noexcept;

 private:
  unique_fd fd_;
};

// While this object lives, its thread receives neither SIGINT nor SIGTERM. A thread that is started
// meanwhile never receives them, because it inherits the mask. So other threads run the handler,
// and the new thread's waits on a ring do not end with EINTR.
class stop_signals_blocked {
 public:
  stop_signals_blocked();
  stop_signals_blocked(stop_signals_blocked&&) = delete;  // what it restores belongs to its thread
  ~stop_signals_blocked();

 private:
  ::sigset_t before_{};
};

}  // namespace common
