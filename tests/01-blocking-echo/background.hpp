// SPDX-License-Identifier: MIT
// A blocking call of the chapter on a thread of its own, which the test can interrupt and outwait.
// Owns     the thread. The destructor makes the call return and joins; a call that does not return
//          even so is left running, so that the test can still say what it was.
// Lifetime what the call uses must outlive this object: declare it first.
// Threads  the test's thread; `unblock` must be safe beside the call.
// Errors   get() throws what the call threw, such as the TODO of an unwritten task.
// Rule     ask finished() before get(): only the test knows what a call that hangs has missed.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <thread>
#include <utility>

#include "client.hpp"
#include "eventually.hpp"
#include "patience.hpp"
#include "process_counts.hpp"

namespace course_test {

template <typename Result>
class background {
 public:
  static constexpr milliseconds unblock_deadline{2000};

  // `unblock` makes the call return if the test ends first.
  template <typename Function>
  background(Function call, std::function<void()> unblock) : unblock_{std::move(unblock)} {
    install_empty_handler();
    std::packaged_task<Result()> task{std::move(call)};
    result_ = task.get_future();
    std::promise<::pid_t> started;
    std::future<::pid_t> tid = started.get_future();
    thread_ = std::thread{[task = std::move(task), started = std::move(started)]() mutable {
      started.set_value(::gettid());
      task();
    }};
    handle_ = thread_.native_handle();
    tid_ = tid.get();
  }
  // For a call on a socket: shutting that down ends it.
  template <typename Function>
  background(int socket, Function call)
      : background{std::move(call), [socket] { ::shutdown(socket, SHUT_RDWR); }} {}
  background(background&&) = delete;
  ~background() {
    if (!thread_.joinable()) return;  // get() has the result
    if (running()) unblock_();
    if (finished(unblock_deadline)) {
      thread_.join();
    } else {
      thread_.detach();
    }
  }

  // Signals without SA_RESTART: the system call in which the thread sleeps returns early. It sends
  // three, because on a busy machine the thread may also have slept on its way to the call.
  void interrupt() const {
    for (int i = 0; i < 3; ++i) {
      [[maybe_unused]] const bool asleep = eventually(
          milliseconds{1000}, [this] { return process_state(tid_) == 'S' || !running(); });
      interrupt_now();
      std::this_thread::sleep_for(milliseconds{2});
    }
  }
  void interrupt_now() const {
    if (running()) ::pthread_kill(handle_, SIGUSR1);
  }

  [[nodiscard]] bool running() const { return !finished(milliseconds{0}); }
  [[nodiscard]] bool finished(milliseconds deadline = step_deadline) const {
    return result_.wait_for(deadline * patience()) == std::future_status::ready;
  }

  // To be called once, after finished(). It joins the thread first: TSan does not see how libstdc++
  // counts the owners of an exception, and would report the thread's release of it as a race.
  Result get() {
    thread_.join();
    return result_.get();
  }

 private:
  static void install_empty_handler() {
    struct ::sigaction action{};
    action.sa_handler = [](int) {};
    ::sigaction(SIGUSR1, &action, nullptr);
  }

  std::function<void()> unblock_;
  std::thread thread_;
  ::pthread_t handle_{};
  ::pid_t tid_ = -1;
  std::future<Result> result_;
};

}  // namespace course_test
