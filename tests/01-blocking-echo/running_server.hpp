// SPDX-License-Identifier: MIT
// A thread_server inside the test program, where its system calls can be scripted.
// Owns     the server, its listener, and the thread in its run().
// Lifetime the constructor returns once a first client was served and let go, and the server asks
//          for the next one; the destructor stops the server and says so if that does not end.
// Threads  one thread calls.
// Errors   the constructor throws what run() threw, such as the TODO of an unwritten task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

#include <catch2/catch_test_macros.hpp>

#include "background.hpp"
#include "client.hpp"
#include "eventually.hpp"
#include "scripted_calls.hpp"
#include "socket_pair.hpp"
#include "thread_server.hpp"

namespace course_test {

// A thread that is lost ends the program; this says so.
inline void name_lost_threads() {
  static const std::terminate_handler before = std::set_terminate([] {
    if (std::current_exception() == nullptr) {
      std::fputs(
          "a std::thread was destroyed or overwritten before anybody had joined it: store each in "
          "the entry of its own client, at the place that insert returned\n",
          stderr);
    }
    before();
  });
}

// The server, whose destructor waits for its sessions; one that waits forever is left behind.
class guarded_server {
 public:
  explicit guarded_server(common::unique_fd listener)
      : server_{std::make_shared<blocking::thread_server>(std::move(listener))} {
    name_lost_threads();
  }
  guarded_server(guarded_server&&) = delete;
  ~guarded_server() {
    const background<void> end{[last = std::move(server_)]() mutable { last.reset(); }, [] {}};
    const bool failing = std::uncaught_exceptions() > 0;  // the test has said why
    if (end.finished(end_deadline) || failing) return;
    FAIL_CHECK(
        "the server cannot end: it waits for a session that is in sessions_ and has no thread, or "
        "whose socket is no longer in its entry, where the destructor looks for it, or whose "
        "converse() has returned without end_session(), or calls echo_until_eof again after it has "
        "returned");
  }

  [[nodiscard]] std::shared_ptr<blocking::thread_server> get() const { return server_; }

 private:
  static constexpr milliseconds end_deadline{3000};

  std::shared_ptr<blocking::thread_server> server_;
};

class running_server {
 public:
  running_server() : running_server{listen_on_any_port()} {}
  running_server(running_server&&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] const background<void>& run() const { return run_; }
  // Throws what run() threw, or says that it has returned, if it has ended.
  void check_running() {
    if (run_.running()) return;
    run_.get();
    throw std::logic_error{
        "run() has returned before stop() was called: after a failed accept() its loop goes on, "
        "unless the listener is broken"};
  }

 private:
  static constexpr milliseconds next_accept_deadline{1000};

  explicit running_server(tcp_listener listener)
      : port_{listener.port},
        begun_before_{accepts_begun()},
        server_{std::move(listener.socket)},
        run_{[server = server_.get()] { server->run(); },
             [server = server_.get()] { server->stop(); }} {
    client first{port_};
    first.send_all("x");
    bool served = false;
    try {
      served =
          eventually(step_deadline, [&] { return !run_.running() || !first.recv_some(1).empty(); });
    } catch (const std::exception&) {
      // the server has closed the connection
    }
    check_running();
    if (!served) {
      FAIL(
          "the first client has no echo: are the tests of 01.2 and 01.3 green, and does converse() "
          "call echo_until_eof? Was `client` moved into its entry before the thread starts? If a "
          "second unique_fd is made of client.get(), the first one closes the socket. Does run() "
          "hold mutex_ when it calls start_session(), which locks it?");
    }
    first.shutdown_write();
    if (first.wait_for_end(step_deadline) == ending::still_open) {
      FAIL(
          "the first client has gone, and its connection stays open: end_session() closes it. Does "
          "converse() call it, and without mutex_, which end_session() locks? Does another thread "
          "hold mutex_ while it waits: run() in accept4(), or start_session() in a join()? Or does "
          "converse() call echo_until_eof again after it has returned?");
    }
    // One accept brought `first`. A script begins with the next one only if that sleeps already.
    (void)eventually(next_accept_deadline, [&] { return accepts_begun() >= begun_before_ + 2; });
  }

  std::uint16_t port_ = 0;
  std::size_t begun_before_;
  guarded_server server_;
  background<void> run_;
};

}  // namespace course_test
