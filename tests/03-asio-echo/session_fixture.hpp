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
#include <stdexcept>
#include <string>
#include <utility>

#include "hang_guard.hpp"
#include "open_sockets.hpp"
#include "socket_pair.hpp"
#include "unique_fd.hpp"

namespace course_test {

struct session_fixture {
  explicit session_fixture(const socket_pair_options& options = {})
      : session_fixture{tcp_pair(options)} {}

  // Runs handlers until the condition holds; false if it does not within two seconds.
  template <typename Condition>
  [[nodiscard]] bool run_until(const Condition& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{2};
    while (!holds()) {
      if (std::chrono::steady_clock::now() >= deadline) return holds();
      io.restart();
      io.run_one_for(std::chrono::milliseconds{5});
    }
    return true;
  }

  void send(const std::string& data) const { send_through(peer.get(), data); }

  // Sends all of it, and collects what comes back while the session runs. A late reader lets every
  // buffer fill first, so that the session's sends become short.
  enum class reader { eager, late };
  [[nodiscard]] std::string echo(const std::string& message, reader how = reader::eager) {
    std::size_t sent = 0;
    const auto send_some = [&] {
      const std::size_t taken = try_send(peer.get(), message.substr(sent, 64 * 1024));
      sent += taken;
      return taken;
    };
    int turns_without_room = how == reader::late ? 0 : turns_until_stalled;
    (void)run_until([&] {
      turns_without_room = send_some() > 0 ? 0 : turns_without_room + 1;
      return sent == message.size() || turns_without_room >= turns_until_stalled;
    });
    std::string received;
    (void)run_until([&] {
      (void)send_some();
      received += receive(peer.get());
      return received.size() >= message.size();
    });
    return received;
  }

  static std::size_t try_send(int socket, const std::string& data) {
    const auto taken = ::send(socket, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return taken > 0 ? static_cast<std::size_t>(taken) : 0;
  }

  static void send_through(int socket, const std::string& data) {
    if (try_send(socket, data) != data.size())
      throw std::runtime_error{"the test's send was short"};
  }

  static std::string receive(int socket) {
    std::string received(64 * 1024, '\0');
    const auto got = ::recv(socket, received.data(), received.size(), MSG_DONTWAIT);
    received.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return received;
  }

  static constexpr int turns_until_stalled = 20;

  hang_guard guard{"a call in the session waits; only async_ operations return at once"};
  completion::open_sockets sockets;
  asio::io_context io{1};
  common::unique_fd peer;
  asio::ip::tcp::socket socket;  // for the session under test: move it there

 private:
  explicit session_fixture(socket_pair pair)
      : peer{std::move(pair.ours)}, socket{io, asio::ip::tcp::v4(), pair.theirs.release()} {}
};

}  // namespace course_test
