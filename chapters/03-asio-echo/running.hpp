// SPDX-License-Identifier: MIT
// Running an io_context on N threads, and ending it cleanly.
// Owns     the threads, the signal_set and the grace timer.
// Lifetime run_on_threads() returns when no work is left or the io_context was stopped.
// Threads  graceful_stop's handlers run in `control`, a strand shared with the acceptor.
// Errors   an exception that escapes from a handler is logged; the other sessions go on.
#pragma once

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "accepting.hpp"
#include "log.hpp"
#include "open_sockets.hpp"
#include "todo.hpp"

namespace completion {

// Call io.run(). When run() returns, no work is left or io.stop() was called, so return. If a
// handler throws, the exception leaves run(). Then log the exception with common::log(), with its
// what() if it has one. Call run() again, which continues with the next handler. Do not call
// io.restart() in between. It is for an io_context whose run() has returned, and would undo an
// io.stop().
inline void run_to_the_end(asio::io_context& io) {
  COURSE_TODO("03.3");
}

// Calls run_to_the_end(io) on threads - 1 new threads (std::jthread) and on this thread. Returns
// when all of them are done. If the system has no thread left, std::jthread's constructor throws.
// Then call io.stop(), so that run() returns on the threads that run already, and rethrow. Declare
// the vector of jthreads above the `try`. A vector inside the `try` would join them before your
// io.stop().
inline void run_on_threads(asio::io_context& io, std::int64_t threads) {
  COURSE_TODO("03.3");
}

class graceful_stop {
 public:
  static constexpr std::chrono::milliseconds grace_ms{1000};

  graceful_stop(strand control, acceptor_loop& acceptor, open_sockets& sockets)
      : control_{std::move(control)}, acceptor_{acceptor}, sockets_{sockets} {
    signals_.async_wait([this](const std::error_code& canceled, int) {
      if (!canceled) begin();
    });
  }

 private:
  // The first signal has come. Begin the stop in four steps:
  // 1. Call signals_.async_wait(), as the constructor does, to wait for a second signal. The
  //    handler calls end_at_once() with the signal's number, but does nothing if the wait was
  //    canceled.
  // 2. Close the acceptor.
  // 3. Set grace_ to grace_ms (expires_after), and only then wait for it (async_wait). The handler
  //    shuts down all sockets with SHUT_RDWR, but does nothing if the wait was canceled.
  // 4. Call sockets_.shut_down_all() with SHUT_RD, so that each session echoes what has arrived.
  // The given last line posts stop_waiting() when no session is left. stop_waiting() cancels both
  // waits, because run() does not return while an operation waits for a signal.
  void begin() {
    COURSE_TODO("03.3");
    sockets_.when_empty([this] { asio::post(control_, [this] { stop_waiting(); }); });
  }

  // clear() restores the default action of the signals, so raise() ends the process. A simpler
  // begin() would call clear() instead of waiting for a second signal, so that the second signal
  // ends the process. But clear() drops a second signal that has come already.
  void end_at_once(int signal) {
    signals_.clear();
    std::raise(signal);
  }

  void stop_waiting() {
    signals_.cancel();
    signals_.clear();
    grace_.cancel();
  }

  strand control_;
  acceptor_loop& acceptor_;
  open_sockets& sockets_;
  asio::signal_set signals_{control_, SIGINT, SIGTERM};
  asio::steady_timer grace_{control_};
};

}  // namespace completion
