// SPDX-License-Identifier: MIT
// A server that answers one request with the bytes that the test gives it, and ends as it is told.
// Owns     its listener and its thread.
// Lifetime the destructor ends the thread, also one that still waits for a client.
// Threads  one of its own; request() after that has answered.
// Errors   a client that does not come, or hangs up early, is no error.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "socket_pair.hpp"
#include "unique_fd.hpp"

namespace course_test {

enum class farewell { close, reset };

class http_peer {
 public:
  // `piece_bytes` is how much it sends at a time; 0 is all at once.
  explicit http_peer(std::string answer, farewell end = farewell::close,
                     std::size_t piece_bytes = 0)
      : listener_{listen_on_any_port()},
        thread_{[this, answer = std::move(answer), end, piece_bytes] {
          serve(answer, end, piece_bytes);
        }} {}
  http_peer(http_peer&&) = delete;
  ~http_peer() { ::shutdown(listener_.socket.get(), SHUT_RDWR); }  // ends an accept, too

  [[nodiscard]] std::string port() const { return std::to_string(listener_.port); }
  [[nodiscard]] std::string request() {
    thread_.join();
    return request_;
  }

 private:
  void serve(std::string_view answer, farewell end, std::size_t piece_bytes) {
    common::unique_fd client{::accept(listener_.socket.get(), nullptr, nullptr)};
    char buffer[4096];
    while (client.valid() && request_.find("\r\n\r\n") == std::string::npos) {
      const ::ssize_t received = ::recv(client.get(), buffer, sizeof buffer, 0);
      if (received <= 0) return;
      request_.append(buffer, static_cast<std::size_t>(received));
    }
    while (client.valid() && !answer.empty()) {
      const std::size_t piece = piece_bytes == 0 ? answer.size() : piece_bytes;
      const ::ssize_t sent =
          ::send(client.get(), answer.data(), std::min(piece, answer.size()), MSG_NOSIGNAL);
      if (sent <= 0) return;
      answer.remove_prefix(static_cast<std::size_t>(sent));
    }
    if (client.valid() && end == farewell::reset) reset_on_close(client.get());
  }

  tcp_listener listener_;
  std::string request_;
  std::jthread thread_;
};

}  // namespace course_test
