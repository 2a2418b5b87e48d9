// SPDX-License-Identifier: MIT
// The naive server, which serves one client after another. It is here to show what goes wrong.
// Owns     the listener.
// Lifetime run() returns after stop(); destroy the object after that.
// Threads  run(): one thread. stop(): any other, once.
// Errors   run() throws std::system_error if accept() fails.
#pragma once

#include <errno.h>
#include <sys/socket.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "echo.hpp"
#include "errors.hpp"
#include "unique_fd.hpp"

namespace blocking {

class sequential_server {
 public:
  explicit sequential_server(common::unique_fd listener) : listener_{std::move(listener)} {}

  void run() {
    while (!stopping_) {
      common::unique_fd client{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
      if (!client.valid()) {
        if (errno == EINTR || stopping_) continue;
        common::throw_errno("accept");
      }
      set_current(client.get());
      echo_until_eof(client.get());  // the next client waits until this one is done
      set_current(-1);
    }
  }

  void stop() {
    stopping_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);  // wakes accept(); close() alone would not
    const std::lock_guard lock{mutex_};
    if (current_ != -1) ::shutdown(current_, SHUT_RDWR);
  }

 private:
  void set_current(int socket) {
    const std::lock_guard lock{mutex_};
    current_ = socket;
    if (stopping_ && socket != -1) ::shutdown(socket, SHUT_RDWR);
  }

  common::unique_fd listener_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  int current_ = -1;  // guarded by mutex_; -1 while no client is served
};

}  // namespace blocking
