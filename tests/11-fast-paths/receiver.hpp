// SPDX-License-Identifier: MIT
// A connection whose peer receives all that comes: on a thread of its own, so that the code under
// test may block meanwhile.
// Owns     both ends, and the thread.
// Lifetime after the context that uses it (so declare it behind that). At its end the connection is
//          shut down: whatever the test has thrown, nobody waits for more.
// Threads  one at a time.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "socket_pair.hpp"

namespace course_test {

class receiver {
 public:
  // It begins only `after` some time, when the sender's socket is full.
  explicit receiver(const socket_pair_options& options = {}, std::chrono::milliseconds after = {})
      : pair_{tcp_pair(options)}, thread_{[this, after] { receive(after); }} {}
  receiver(receiver&&) = delete;  // its thread holds its address
  ~receiver() { shut_down(); }

  // The end for the code under test.
  [[nodiscard]] int sender() const noexcept { return pair_.theirs.get(); }

  // Ends the connection, and returns the bytes that have come by then.
  [[nodiscard]] std::string all() {
    shut_down();
    thread_.join();
    return std::move(all_);
  }

 private:
  void shut_down() noexcept { (void)::shutdown(pair_.theirs.get(), SHUT_WR); }

  void receive(std::chrono::milliseconds after) {
    std::this_thread::sleep_for(after);
    std::vector<char> buffer(1 << 16);
    while (true) {
      const ::ssize_t got = ::recv(pair_.ours.get(), buffer.data(), buffer.size(), 0);
      if (got <= 0) return;
      all_.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }

  socket_pair pair_;
  std::string all_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace course_test
