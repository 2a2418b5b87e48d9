// SPDX-License-Identifier: MIT
// One session of the chapter on an io_context that the test drives, with its peer in the test.
// Owns     the io_context, both sockets.
// Lifetime the session ends with the io_context at the latest.
// Threads  the test's thread: handlers run inside run_until() and nowhere else.
// Errors   what a handler throws comes out of run_until(), such as the TODO of an unwritten task.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "hang_guard.hpp"
#include "open_sockets.hpp"
#include "patience.hpp"
#include "socket_pair.hpp"
#include "unique_fd.hpp"

namespace course_test {

struct session_fixture {
  explicit session_fixture(const socket_pair_options& options = {})
      : session_fixture{tcp_pair(options)} {}

  // Runs handlers until the condition holds; false if it does not within two seconds.
  template <typename Condition>
  [[nodiscard]] bool run_until(const Condition& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{2} * patience();
    while (!holds()) {
      if (std::chrono::steady_clock::now() >= deadline) return holds();
      io.restart();
      const bool ran = io.run_one_for(std::chrono::milliseconds{5}) > 0;
      idle_turns = ran ? 0 : idle_turns + 1;
    }
    return true;
  }

  // Runs handlers until none is due: the session waits for its peer.
  void settle() {
    idle_turns = 0;
    (void)run_until([this] { return idle_turns > 0; });
  }

  // Sends until every buffer is full and the session can do nothing more. Returns how many bytes of
  // the message were sent.
  [[nodiscard]] std::size_t fill(const std::string& message) {
    std::size_t sent = 0;
    idle_turns = 0;
    (void)run_until([&] {
      const std::size_t taken = try_send(peer.get(), message.substr(sent, 64 * 1024));
      sent += taken;
      return taken == 0 && idle_turns >= idle_turns_when_stalled;
    });
    return sent;
  }

  // Sends all of it, and collects what comes back while the session runs. A late reader first lets
  // every buffer fill, so that the session's sends become short; `meanwhile` runs then.
  enum class reader { eager, late };
  [[nodiscard]] std::string echo(
      const std::string& message, reader how = reader::eager,
      const std::function<void()>& meanwhile = [] {}) {
    std::size_t sent = how == reader::late ? fill(message) : 0;
    meanwhile();
    std::string received;
    (void)run_until([&] {
      sent += try_send(peer.get(), message.substr(sent, 64 * 1024));
      received += receive(peer.get());
      return received.size() >= message.size();
    });
    return received;
  }

  static std::size_t try_send(int socket, const std::string& data) {
    const auto taken = ::send(socket, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return taken > 0 ? static_cast<std::size_t>(taken) : 0;
  }

  static std::string receive(int socket) {
    std::string received(64 * 1024, '\0');
    const auto got = ::recv(socket, received.data(), received.size(), MSG_DONTWAIT);
    received.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return received;
  }

  static constexpr int idle_turns_when_stalled = 10;

  hang_guard guard{"a call in the session waits; only async_ operations return at once"};
  completion::open_sockets sockets;
  asio::io_context io{1};
  common::unique_fd peer;
  int idle_turns = 0;            // turns in a row in which no handler was due
  asio::ip::tcp::socket socket;  // for the session under test: move it there

 private:
  explicit session_fixture(socket_pair pair)
      : peer{std::move(pair.ours)}, socket{io, asio::ip::tcp::v4(), pair.theirs.release()} {}
};

}  // namespace course_test
