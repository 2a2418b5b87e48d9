// SPDX-License-Identifier: MIT
// A made-up HTTP server: the path says what it does. It counts how many it serves at a time.
// Owns     its listener, a thread for each client, and one that accepts.
// Lifetime the destructor ends the clients' connections, and joins.
// Threads  its own; the counts may be read by any.
// Errors   a client that hangs up early is no error.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "socket_pair.hpp"
#include "unique_fd.hpp"

namespace course_test {

class http_town {
 public:
  http_town() = default;
  http_town(http_town&&) = delete;
  ~http_town() {
    ::shutdown(listener_.socket.get(), SHUT_RDWR);
    acceptor_.join();
    for (const common::unique_fd& each : clients_) ::shutdown(each.get(), SHUT_RDWR);
  }

  // HOST:PORT and a path: /bytes/N, /slow/N (it takes a while), /chunked, /missing (404), /short
  // (ends before its body does), /garbage, /reset, /never (says nothing).
  [[nodiscard]] std::string at(const std::string& path) const {
    return "127.0.0.1:" + std::to_string(listener_.port) + path;
  }

  [[nodiscard]] int at_a_time_max() const { return at_a_time_max_; }
  [[nodiscard]] int served() const { return served_; }

 private:
  void accept_clients() {
    for (;;) {
      common::unique_fd client{::accept(listener_.socket.get(), nullptr, nullptr)};
      if (!client.valid()) return;
      const int socket = client.get();
      const std::lock_guard lock{mutex_};
      clients_.push_back(std::move(client));
      threads_.emplace_back([this, socket] { serve(socket); });
    }
  }

  void serve(int socket) {
    const int now = ++at_a_time_;
    for (int most = at_a_time_max_; now > most;) {
      if (at_a_time_max_.compare_exchange_weak(most, now)) break;
    }
    std::string request;
    char buffer[1024];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ::ssize_t received = ::recv(socket, buffer, sizeof buffer, 0);
      if (received <= 0) break;
      request.append(buffer, static_cast<std::size_t>(received));
    }
    const std::string path = request.substr(4, request.find(' ', 4) - 4);
    if (path == "/never") {  // until the client leaves, or the town ends
      ::recv(socket, buffer, sizeof buffer, 0);
    }
    if (path.starts_with("/slow")) std::this_thread::sleep_for(std::chrono::milliseconds{60});
    ++served_;
    --at_a_time_;  // before the answer: whoever has it may come again at once
    const std::string answer = answer_to(path);
    ::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);
    if (path == "/reset") reset_on_close(socket);
    ::shutdown(socket, SHUT_WR);
  }

  static std::string answer_to(const std::string& path) {
    const auto body = [](std::size_t bytes) {
      return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n" +
             std::string(bytes, 'b');
    };
    if (path.starts_with("/bytes/")) return body(std::stoul(path.substr(7)));
    if (path.starts_with("/slow/")) return body(std::stoul(path.substr(6)));
    if (path == "/chunked") {
      return "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
             "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    }
    if (path == "/missing") return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    if (path == "/short") return "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this";
    if (path == "/garbage") return "what do you want?\r\n\r\n";
    return "";
  }

  tcp_listener listener_ = listen_on_any_port();
  std::mutex mutex_;  // guards the next two while clients come
  std::vector<common::unique_fd> clients_;
  std::atomic<int> at_a_time_ = 0;
  std::atomic<int> at_a_time_max_ = 0;
  std::atomic<int> served_ = 0;
  std::vector<std::jthread> threads_;
  std::jthread acceptor_{[this] { accept_clients(); }};
};

}  // namespace course_test
