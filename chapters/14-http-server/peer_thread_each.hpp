// SPDX-License-Identifier: MIT
// Accepts clients and gives each a thread. A thread that ends writes to an eventfd, so that the
// accepting thread joins it, and tries to accept again, because a descriptor is free.
// Owns     the listener, which does not block, and each client's socket and thread.
// Lifetime the destructor ends every client and joins its thread.
// Threads  run(): one thread.
// Errors   run() throws std::system_error if the listener breaks. A client's exception is logged,
//          and ends that client only.
// Rule     a socket is closed under the mutex: the stop must never shut down a number that belongs
//          to another client by now.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "log.hpp"
#include "peer_options.hpp"
#include "unique_fd.hpp"

namespace uring::http {

class thread_each {
 public:
  // `converse` is called on a client's own thread, with its socket.
  thread_each(common::unique_fd listener, int stop_fd, std::function<void(int)> converse)
      : listener_{std::move(listener)}, stop_fd_{stop_fd}, converse_{std::move(converse)} {}
  thread_each(thread_each&&) = delete;  // the threads hold its address
  ~thread_each() { finish(); }

  void run() {
    bool has_room = true;
    for (;;) {
      std::array<::pollfd, 3> wake{{{stop_fd_, POLLIN, 0}, {ended_fd_.get(), POLLIN, 0}, {}}};
      wake[2] = {has_room ? listener_.get() : -1, POLLIN, 0};  // poll() ignores a negative fd
      const auto pause_ms = static_cast<int>(peer_accept_retry_ms.count());
      if (::poll(wake.data(), wake.size(), has_room ? -1 : pause_ms) == -1 && errno != EINTR) {
        common::throw_errno("poll");
      }
      if (wake[0].revents != 0) return;
      join_ended();
      has_room = accept_one();
    }
  }

 private:
  struct session {
    common::unique_fd socket;
    std::thread thread;
  };
  using place = std::list<session>::iterator;

  // False if there is no free descriptor, or no thread, for a client.
  bool accept_one() {
    common::unique_fd client{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (client.valid()) return start(std::move(client));
    const auto failure = common::classify_accept_errno(errno);
    if (failure == common::accept_failure::listener_broken) common::throw_errno("accept");
    return failure != common::accept_failure::out_of_descriptors;
  }

  bool start(common::unique_fd client) {
    const std::lock_guard lock{mutex_};  // the new thread cannot end before its entry is complete
    const auto self = sessions_.insert(sessions_.end(), {std::move(client), {}});
    try {
      self->thread = std::thread{[this, self] { serve(self); }};
    } catch (const std::system_error&) {
      sessions_.erase(self);
      return false;
    }
    return true;
  }

  void serve(place self) {
    try {
      converse_(self->socket.get());
    } catch (const std::exception& error) {
      common::log(std::string{"a connection ended: "} + error.what());
    }
    const std::lock_guard lock{mutex_};
    ended_.push_back(std::move(self->thread));
    sessions_.erase(self);  // under the mutex, so finish() shuts down no reused number
    (void)::eventfd_write(ended_fd_.get(), 1);
    one_ended_.notify_all();
  }

  void join_ended() {
    ::eventfd_t ignored = 0;
    (void)::eventfd_read(ended_fd_.get(), &ignored);
    std::unique_lock lock{mutex_};
    std::vector<std::thread> all = std::exchange(ended_, {});
    lock.unlock();
    for (std::thread& each : all) each.join();
  }

  // After SHUT_RD, bytes that have come can still be read, and are answered. A client that has not
  // left within the grace time is cut off.
  void finish() {
    std::unique_lock lock{mutex_};
    const auto nobody_is_left = [this] { return sessions_.empty(); };
    for (const session& each : sessions_) ::shutdown(each.socket.get(), SHUT_RD);
    if (!one_ended_.wait_for(lock, peer_stop_grace_ms, nobody_is_left)) {
      for (const session& each : sessions_) ::shutdown(each.socket.get(), SHUT_RDWR);
      one_ended_.wait(lock, nobody_is_left);
    }
    lock.unlock();
    join_ended();
  }

  common::unique_fd listener_;
  int stop_fd_;
  std::function<void(int)> converse_;
  common::unique_fd ended_fd_{common::check(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")};
  std::mutex mutex_;  // guards sessions_ and ended_
  std::list<session> sessions_;
  std::vector<std::thread> ended_;  // not joined yet
  std::condition_variable one_ended_;
};

}  // namespace uring::http
