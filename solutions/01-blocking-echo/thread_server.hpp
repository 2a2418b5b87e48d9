// SPDX-License-Identifier: MIT
// An echo server with one thread for each connection.
// Owns     the listener, and the descriptor and the thread of each connection.
// Lifetime run() returns after stop(); the destructor ends every session and joins its thread.
// Threads  run(): one thread. stop(): any other, once.
// Errors   run() throws std::system_error if the listener breaks. A connection's error ends only
//          that connection.
// Rule     a session's descriptor is closed only under the mutex, because shut_down_sessions() must
//          never call shutdown() on a number that already belongs to another client.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "echo.hpp"
#include "errors.hpp"
#include "log.hpp"
#include "todo.hpp"
#include "unique_fd.hpp"

namespace blocking {

class thread_server {
 public:
  static constexpr std::chrono::milliseconds stop_grace_ms{1000};

  explicit thread_server(common::unique_fd listener) : listener_{std::move(listener)} {}
  thread_server(thread_server&&) = delete;  // sessions hold our address
  ~thread_server() { finish_sessions(); }

  // Accepts clients until stop() is called. Call accept4() with SOCK_CLOEXEC, and start_session()
  // with each client. If accept4() fails, common::classify_accept_errno(errno) returns one of
  // these:
  // - try_again: this client is gone, or a signal came. Accept the next client.
  // - out_of_descriptors: call wait_for_a_session_to_end(), and accept again.
  // - listener_broken: call common::throw_errno("accept"). (classify_accept_errno() and stopping_
  //   do not change errno.)
  // nothing_waiting never occurs, because accept4() blocks. After stop(), accept4() fails with
  // EINVAL, as if the listener were broken, or with EMFILE. So look at stopping_ after every
  // failure, before you throw. If stopping_ is true, return from run(). A client that was accepted
  // after stop() may be served or closed.
  void run() {
    // --8<-- [start:task-01-4]
    while (!stopping_) {
      common::unique_fd client{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
      if (client.valid()) {
        start_session(std::move(client));
        continue;
      }
      const auto failure = common::classify_accept_errno(errno);
      if (failure == common::accept_failure::out_of_descriptors) wait_for_a_session_to_end();
      if (failure == common::accept_failure::listener_broken && !stopping_) {
        common::throw_errno("accept");
      }
    }
    // --8<-- [end:task-01-4]
  }

  void stop() {
    stopping_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);  // wakes accept(); close() alone would not
  }

 private:
  struct session {
    common::unique_fd socket;
    std::thread thread;
  };
  using session_place = std::list<session>::iterator;

  // Lock mutex_, because run() has not locked it. Insert `client` into sessions_ with
  // `std::thread{}`, a thread object that runs nothing. insert() returns the place of the new
  // entry. Then store in the entry a thread that calls converse() with this place. The thread may
  // end immediately, and its end_session() must find the entry complete. If the constructor of
  // std::thread throws a std::exception, call drop() for this client, and return.
  void start_session(common::unique_fd client) {
    // --8<-- [start:task-01-4b]
    const std::lock_guard lock{mutex_};  // the new thread waits here until its entry is complete
    const auto self = sessions_.insert(sessions_.end(), {std::move(client), {}});
    try {
      self->thread = std::thread{[this, self] { converse(self); }};
    } catch (const std::exception& error) {
      drop(self, error);
    }
    // --8<-- [end:task-01-4b]
  }

  // start_session() calls drop() while it holds mutex_. Erases the entry, which closes the socket.
  // Writes one line to the log for all clients that are dropped until a session ends.
  void drop(session_place self, const std::exception& error) {
    if (!dropping_) common::log(std::string{"no thread for new clients: "} + error.what());
    dropping_ = true;
    sessions_.erase(self);
  }

  // Runs on the session's own thread. Calls echo_until_eof() on the session's socket, without
  // holding mutex_. Then end_session() takes the entry out of sessions_, which closes the socket.
  void converse(session_place self) {
    // --8<-- [start:task-01-4c]
    echo_until_eof(self->socket.get());
    // --8<-- [end:task-01-4c]
    end_session(self);
  }

  void end_session(session_place self) {
    const std::lock_guard lock{mutex_};
    assert(self != sessions_.end() && "this is no entry: keep the iterator that insert returns");
    assert(self->thread.joinable() &&
           "no thread here to join: detached, stored late, ended twice, or `self` a reference?");
    ended_.push_back(std::move(self->thread));
    sessions_.erase(self);
    dropping_ = false;
    session_ended_.notify_all();
  }

  // A thread cannot join itself, and no session should wait for another, so the reaper joins all.
  void reap(const std::stop_token& stopping) {
    std::unique_lock lock{mutex_};
    while (session_ended_.wait(lock, stopping, [this] { return !ended_.empty(); })) {
      std::vector<std::thread> ended = std::exchange(ended_, {});
      lock.unlock();
      for (std::thread& each : ended) each.join();
      lock.lock();
    }
  }

  void wait_for_a_session_to_end() {
    std::unique_lock lock{mutex_};
    // The wait has a limit because other code in this process may close descriptors, too.
    session_ended_.wait_for(lock, std::chrono::milliseconds{100});
  }

  // After SHUT_RD the bytes that have arrived can still be read, so they are echoed first. Linux
  // also delivers later bytes. So a client that keeps sending, or that does not read its echoes, is
  // disconnected after stop_grace_ms.
  void finish_sessions() {
    std::unique_lock lock{mutex_};
    shut_down_sessions(SHUT_RD);
    const auto none_left = [this] { return sessions_.empty(); };
    if (!session_ended_.wait_for(lock, stop_grace_ms, none_left)) shut_down_sessions(SHUT_RDWR);
    session_ended_.wait(lock, none_left);
  }

  void shut_down_sessions(int how) {
    for (const session& each : sessions_) ::shutdown(each.socket.get(), how);
  }

  common::unique_fd listener_;
  std::atomic<bool> stopping_ = false;

  std::mutex mutex_;  // guards all below
  std::list<session> sessions_;
  bool dropping_ = false;
  std::vector<std::thread> ended_;  // the threads of ended sessions, which reap() must still join
  std::condition_variable_any session_ended_;
  std::jthread reaper_{[this](const std::stop_token& stopping) { reap(stopping); }};
};

}  // namespace blocking
