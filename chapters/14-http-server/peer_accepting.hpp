// SPDX-License-Identifier: MIT
// Accepts clients and stops, for both of 14's peers over asio; each peer serves in its own way.
// Owns     the listener, two timers, and a second descriptor of the stop signal.
// Lifetime `io`, `clients` and the objects that `start` uses must outlive it. Do not run a handler
//          of `io` after the acceptor is destroyed.
// Threads  the one that runs the io_context.
// Errors   a client that is gone is skipped; without a free descriptor, accepting pauses. If the
//          listener is broken, run() throws std::system_error.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <exception>
#include <functional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "errors.hpp"
#include "log.hpp"
#include "peer_options.hpp"
#include "unique_fd.hpp"

namespace uring::http {

// The sockets of all clients, so that a stop can reach them. As in chapter 03, but for one thread.
class peer_sockets {
 public:
  // Keeps a socket in the set. Declare it after the socket, so that it is destroyed first.
  class entry {
   public:
    entry(peer_sockets& all, int fd) : all_{all}, fd_{fd} { all_.fds_.insert(fd_); }
    entry(entry&&) = delete;
    ~entry() {
      all_.fds_.erase(fd_);
      if (all_.fds_.empty() && all_.when_empty_) all_.when_empty_();
    }

   private:
    peer_sockets& all_;
    int fd_;
  };

  void shut_down_all(int how) const {
    for (const int fd : fds_) ::shutdown(fd, how);
  }
  void when_empty(std::function<void()> done) {
    when_empty_ = std::move(done);
    if (fds_.empty()) when_empty_();
  }

 private:
  std::set<int> fds_;
  std::function<void()> when_empty_;
};

class peer_acceptor {
 public:
  using tcp = asio::ip::tcp;

  peer_acceptor(asio::io_context& io, common::unique_fd listener, int stop_fd,
                peer_sockets& clients, std::function<void(tcp::socket)> start)
      : io_{io},
        acceptor_{io, tcp::v4(), listener.release()},
        stop_{io, common::check(::fcntl(stop_fd, F_DUPFD_CLOEXEC, 0), "fcntl")},
        clients_{clients},
        start_{std::move(start)} {}
  peer_acceptor(peer_acceptor&&) = delete;  // handlers hold its address

  // Serves until the stop.
  void run() {
    stop_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [this](const std::error_code& error) {
                       if (!error) begin_stop();
                     });
    accept();
    for (bool is_over = false; !is_over;) is_over = run_handlers();
    if (broken_) throw std::system_error{broken_, "accept"};
  }

 private:
  // A handler that throws ends only its own client.
  bool run_handlers() {
    try {
      io_.run();
      return true;
    } catch (const std::exception& error) {
      common::log(std::string{"a connection ended: "} + error.what());
      return false;
    }
  }

  void accept() {
    acceptor_.async_accept([this](const std::error_code& error, tcp::socket client) {
      if (!acceptor_.is_open()) return;
      if (error) return after_failure(error);
      accept();  // first, so that accepting goes on even if this client cannot be started
      start_(std::move(client));
    });
  }

  void after_failure(const std::error_code& error) {
    switch (common::classify_accept_errno(error.value())) {
      case common::accept_failure::out_of_descriptors:
        timer_.expires_after(peer_accept_retry_ms);
        return timer_.async_wait([this](const std::error_code& canceled) {
          if (!canceled) accept();
        });
      case common::accept_failure::listener_broken:
        broken_ = error;
        return io_.stop();
      default:
        accept();
    }
  }

  // After SHUT_RD, bytes that have come can still be read, and are answered. A client that has not
  // left within the grace time is cut off.
  void begin_stop() {
    acceptor_.close();
    timer_.expires_after(peer_stop_grace_ms);
    timer_.async_wait([this](const std::error_code& canceled) {
      if (!canceled) clients_.shut_down_all(SHUT_RDWR);
    });
    clients_.shut_down_all(SHUT_RD);
    clients_.when_empty([this] { timer_.cancel(); });
  }

  asio::io_context& io_;
  tcp::acceptor acceptor_;
  asio::posix::stream_descriptor stop_;
  asio::steady_timer timer_{io_};  // for the pause before the next accept, or for the stop
  peer_sockets& clients_;
  std::function<void(tcp::socket)> start_;
  std::error_code broken_;
};

}  // namespace uring::http
