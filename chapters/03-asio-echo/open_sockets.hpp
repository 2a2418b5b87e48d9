// SPDX-License-Identifier: MIT
// The sockets of all live sessions, so that a stop can reach them from any thread.
// Owns     nothing: it holds descriptor numbers. An entry must be destroyed before its socket is.
// Lifetime must outlive every entry.
// Threads  any: one mutex guards the set.
// Rule     asio's socket object belongs to its session, so a stop from another thread may use only
//          the descriptor, through shutdown(2), and only while the entry is there.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

namespace completion {

class open_sockets {
 public:
  // Keeps a socket in the set as long as the entry lives. Declare the entry after the socket,
  // which must outlive it. Once the socket is closed, its number may belong to another client.
  class entry {
   public:
    entry(open_sockets& sockets, int fd) : sockets_{sockets}, fd_{fd} { sockets_.add(fd_); }
    entry(entry&&) = delete;
    ~entry() { sockets_.remove(fd_); }

   private:
    open_sockets& sockets_;
    int fd_;
  };

  // After SHUT_RD, every session can still read the bytes that have arrived, and then EOF. SHUT_RD
  // does not end a session that waits to send. Linux delivers later bytes as well, so SHUT_RD does
  // not end a session whose client keeps sending, either. SHUT_RDWR ends every session immediately.
  // The socket of an entry that is added later is shut down in the same way.
  void shut_down_all(int how) {
    const std::lock_guard lock{mutex_};
    how_ = how;
    for (const int fd : fds_) ::shutdown(fd, how);
  }

  // Calls `done` once no entry is left: in this call, or later in the thread that removes the last
  // entry. Nothing waits for an entry that is added later, so its socket is shut down both ways.
  void when_empty(std::function<void()> done) {
    std::unique_lock lock{mutex_};
    when_empty_ = std::move(done);
    call_if_empty(lock);
  }

 private:
  static constexpr int not_stopping = -1;

  void add(int fd) {
    const std::lock_guard lock{mutex_};
    fds_.insert(fd);
    if (how_ != not_stopping) ::shutdown(fd, how_);
  }

  void remove(int fd) {
    std::unique_lock lock{mutex_};
    fds_.erase(fd);
    call_if_empty(lock);
  }

  void call_if_empty(std::unique_lock<std::mutex>& lock) {
    if (!fds_.empty() || !when_empty_) return;
    const auto done = std::exchange(when_empty_, nullptr);
    how_ = SHUT_RDWR;
    lock.unlock();
    done();
  }

  std::mutex mutex_;  // guards all below
  std::set<int> fds_;
  int how_ = not_stopping;
  std::function<void()> when_empty_;
};

}  // namespace completion
