// SPDX-License-Identifier: MIT
// One thread that serves every client that is ready.
// Owns     the listener, the epoll instance, and every connection through connections_.
// Lifetime run() returns after a stop: when no connection is left, or after stop_grace_ms.
// Threads  the thread that calls run(), and no other.
// Errors   std::system_error if epoll or the listener fails; a client's error ends its connection.
// Rule     a watched connection is erased only while its event is handled. One epoll_wait reports
//          no descriptor twice, so no later event of that call is about a closed connection.
// See      epoll(7), epoll_ctl(2), epoll_wait(2)
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "connection.hpp"
#include "errors.hpp"
#include "log.hpp"
#include "stop_signal.hpp"
#include "todo.hpp"
#include "unique_fd.hpp"

namespace epoll {

class echo_loop {
 public:
  static constexpr std::size_t scratch_bytes = 64 * 1024;
  static constexpr std::size_t events_max = 256;
  static constexpr std::chrono::milliseconds stop_grace_ms{1000};
  static constexpr std::chrono::milliseconds accept_retry_ms{100};

  // `listener` must be non-blocking: see accept_all().
  echo_loop(common::unique_fd listener, const common::stop_signal& stop)
      : listener_{std::move(listener)}, stop_fd_{stop.fd()} {
    watch(EPOLL_CTL_ADD, listener_.get(), EPOLLIN);
    watch(EPOLL_CTL_ADD, stop_fd_, EPOLLIN);
  }

  void run() {
    while (!done()) turn();
  }

  // --8<-- [start:turn]
  // One round of the loop: wait until a client is ready, then serve all clients that are.
  void turn() {
    std::array<::epoll_event, events_max> events;
    const int ready = ::epoll_wait(epoll_.get(), events.data(), events_max, timeout_ms());
    if (ready == -1) {
      if (errno == EINTR) return;
      common::throw_errno("epoll_wait");
    }
    for (const ::epoll_event& event : std::span{events}.first(static_cast<std::size_t>(ready))) {
      handle(event);
    }
    if (retry_accept_at_ && clock::now() >= *retry_accept_at_) resume_accepting();
  }
  // --8<-- [end:turn]

  [[nodiscard]] std::size_t connection_count() const noexcept { return connections_.size(); }

 private:
  using clock = std::chrono::steady_clock;

  void handle(const ::epoll_event& event) {
    if (event.data.fd == stop_fd_) return begin_stop();
    if (event.data.fd == listener_.get()) return accept_all();
    serve(event.data.fd);
  }

  // Accepts every waiting client. Call accept4() with SOCK_NONBLOCK | SOCK_CLOEXEC, and add() with
  // each client. If accept4() fails, common::classify_accept_errno(errno) returns one of the four
  // values of common::accept_failure (errors.hpp). If a client is gone already (try_again), the
  // next client must not wait. If no descriptor or memory is free, the listener stays readable and
  // would wake the loop again and again. So call pause_accepting(), which does not sleep, and
  // return. If the listener is broken, call common::throw_errno("accept").
  void accept_all() {
    // --8<-- [start:task-02-1]
    while (true) {
      common::unique_fd client{
          ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
      if (client.valid()) {
        add(std::move(client));
        continue;
      }
      switch (common::classify_accept_errno(errno)) {
        case common::accept_failure::try_again:
          continue;
        case common::accept_failure::nothing_waiting:
          return;
        case common::accept_failure::out_of_descriptors:
          return pause_accepting();
        case common::accept_failure::listener_broken:
          common::throw_errno("accept");
      }
    }
    // --8<-- [end:task-02-1]
  }

  // Put the client into connections_, under its descriptor. Then call watch(), with EPOLL_CTL_ADD
  // and EPOLLIN, so that epoll reports the client's bytes. If epoll refuses the client for any
  // reason, watch() throws std::system_error. Then take the client out again, and return. Log the
  // first drop with common::log(std::string{"no room for new clients: "} + error.what()). Log no
  // other drop until epoll has accepted a client. For this, set and reset dropping_.
  void add(common::unique_fd client) {
    // --8<-- [start:task-02-1b]
    const int fd = client.get();
    connections_.emplace(fd, std::move(client));
    try {
      watch(EPOLL_CTL_ADD, fd, EPOLLIN);
      dropping_ = false;
    } catch (const std::system_error& error) {
      if (!dropping_) common::log(std::string{"no room for new clients: "} + error.what());
      dropping_ = true;
      connections_.erase(fd);
    }
    // --8<-- [end:task-02-1b]
  }

  // If wanted_events() is EPOLLOUT, call on_writable(), else on_readable() with scratch_. If that
  // call returns closed, erase the connection, and do not use it again. If it returns open, and
  // wanted_events() has changed, call watch() with EPOLL_CTL_MOD. Otherwise make no call. An error
  // that epoll reports needs no case of its own, because the next send or recv returns it.
  void serve(int fd) {
    const auto found = connections_.find(fd);
    if (found == connections_.end()) return;  // an event of the listener that begin_stop() closed
    connection& client = found->second;
    // --8<-- [start:task-02-4]
    const std::uint32_t wanted = client.wanted_events();
    const state after = wanted == EPOLLOUT ? client.on_writable() : client.on_readable(scratch_);
    if (after == state::closed) {
      connections_.erase(found);  // closing the descriptor takes it out of epoll, too
    } else if (client.wanted_events() != wanted) {
      watch(EPOLL_CTL_MOD, fd, client.wanted_events());
    }
    // --8<-- [end:task-02-4]
  }

  void watch(int operation, int fd, std::uint32_t events) {
    ::epoll_event event{.events = events, .data = {.fd = fd}};
    common::check(::epoll_ctl(epoll_.get(), operation, fd, &event), "epoll_ctl");
  }

  // The listener stays on the interest list, but epoll no longer reports that clients wait.
  void pause_accepting() {
    watch(EPOLL_CTL_MOD, listener_.get(), 0);
    retry_accept_at_ = clock::now() + accept_retry_ms;
  }

  void resume_accepting() {
    watch(EPOLL_CTL_MOD, listener_.get(), EPOLLIN);
    retry_accept_at_.reset();
  }

  // Accepts no more clients. After SHUT_RD the bytes that have arrived can still be read, and then
  // recv returns 0, so a connection echoes those bytes and ends by itself. But Linux delivers later
  // bytes, too. So a client that keeps sending is disconnected at the deadline. Bytes that arrive
  // after the connection has ended cause a reset, which discards the echoes still on the way.
  void begin_stop() {
    stop_deadline_ = clock::now() + stop_grace_ms;
    watch(EPOLL_CTL_DEL, stop_fd_, 0);
    listener_.reset();
    retry_accept_at_.reset();
    for (const auto& [fd, client] : connections_) ::shutdown(fd, SHUT_RD);
  }

  [[nodiscard]] bool done() const {
    if (!stop_deadline_) return false;
    return connections_.empty() || clock::now() >= *stop_deadline_;
  }

  [[nodiscard]] int timeout_ms() const {
    const auto& wake_at = stop_deadline_ ? stop_deadline_ : retry_accept_at_;
    if (!wake_at) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*wake_at - clock::now());
    return std::max(static_cast<int>(left.count()), 0);
  }

  common::unique_fd listener_;
  int stop_fd_;  // owned by the stop_signal
  common::unique_fd epoll_{common::check(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")};
  std::unordered_map<int, connection> connections_;  // by descriptor
  bool dropping_ = false;  // true after epoll has refused a client, until it accepts one
  std::optional<clock::time_point> retry_accept_at_;  // set while we are out of descriptors
  std::optional<clock::time_point> stop_deadline_;    // set when a stop begins
  std::array<std::byte, scratch_bytes> scratch_;      // shared: no byte stays after its event
};

}  // namespace epoll
