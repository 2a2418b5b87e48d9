// SPDX-License-Identifier: MIT
// A socket that nothing comes from: a recv on it hangs by construction, so that only a cancel or a
// deadline can end it. If neither does, the other end is shut down after a while: the recv returns
// 0, and the test can say so.
// Owns     both ends, and a thread that waits.
// Lifetime make it before the io_context's tasks, let it go after them.
// Threads  say(): the test's own.
// Errors   std::system_error from the constructor.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>

#include "errors.hpp"
#include "patience.hpp"
#include "socket_pair.hpp"

namespace course_test {

class silent_socket {
 public:
  [[nodiscard]] static std::chrono::milliseconds rescue_after() {
    return std::chrono::milliseconds{3000} * patience();
  }

  silent_socket() = default;
  silent_socket(silent_socket&&) = delete;  // the thread knows our address

  [[nodiscard]] int fd() const noexcept { return pair_.theirs.get(); }
  [[nodiscard]] int other() const noexcept { return pair_.ours.get(); }

  // Sends bytes, which end the wait.
  void say(std::string_view text) const {
    common::check(::send(pair_.ours.get(), text.data(), text.size(), MSG_NOSIGNAL), "send");
  }

 private:
  socket_pair pair_ = unix_pair();
  std::mutex mutex_;
  std::condition_variable_any over_;
  std::jthread rescuer_{[this](const std::stop_token& stop) {
    std::unique_lock lock{mutex_};
    over_.wait_for(lock, stop, rescue_after(), [] { return false; });
    if (!stop.stop_requested()) ::shutdown(pair_.ours.get(), SHUT_RDWR);
  }};
};

}  // namespace course_test
