// SPDX-License-Identifier: MIT
// A blocking call of the chapter on a thread of its own, which the test can interrupt and outwait.
// Owns     the thread; the destructor shuts the socket down, so that the call returns, and joins.
// Lifetime the socket must outlive this object: declare it first.
// Threads  get() and interrupt(): the test's thread.
// Errors   get() throws what the call threw, such as the TODO of an unwritten task, or says that
// the
//          call has not returned.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <future>
#include <stdexcept>
#include <utility>

#include "client.hpp"

namespace course_test {

template <typename Result>
class background {
 public:
  template <typename Function>
  background(int socket, Function call) : socket_{socket} {
    install_empty_handler();
    std::promise<::pthread_t> started;
    std::future<::pthread_t> thread = started.get_future();
    result_ = std::async(std::launch::async, [call, started = std::move(started)]() mutable {
      started.set_value(::pthread_self());
      return call();
    });
    thread_ = thread.get();
  }
  background(background&&) = delete;
  ~background() {
    if (result_.valid()) ::shutdown(socket_, SHUT_RDWR);
  }

  // A signal without SA_RESTART: the system call that the thread is in returns early. Only before
  // get() has returned.
  void interrupt() const { ::pthread_kill(thread_, SIGUSR1); }

  [[nodiscard]] bool running() const {
    return result_.wait_for(milliseconds{0}) != std::future_status::ready;
  }

  Result get(milliseconds deadline = step_deadline) {
    if (result_.wait_for(deadline) != std::future_status::ready) {
      throw std::runtime_error{"the call has not returned; what is it still waiting for?"};
    }
    return result_.get();
  }

 private:
  static void install_empty_handler() {
    struct ::sigaction action{};
    action.sa_handler = [](int) {};
    ::sigaction(SIGUSR1, &action, nullptr);
  }

  int socket_;
  ::pthread_t thread_{};
  std::future<Result> result_;
};

}  // namespace course_test
