// SPDX-License-Identifier: MIT
// One thread that serves every client through one ring.
// Owns     the listener, the ring, and every connection through connections_.
// Lifetime run() returns after a stop, when every client has left or after two stop_grace_ms.
// Threads  only the thread that made it may call run().
// Errors   std::system_error if the ring or listener fails; a client's error ends its connection.
// Rule     a connection has exactly one request in flight, and is erased only when that request's
//          completion is handled, because until then the kernel holds the buffer's address.
// See      io_uring(7), io_uring_enter(2)
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "errors.hpp"
#include "requests.hpp"
#include "ring.hpp"
#include "ring_connection.hpp"
#include "slot_table.hpp"
#include "stop_signal.hpp"
#include "todo.hpp"
#include "unique_fd.hpp"

namespace uring {

class ring_echo {
 public:
  static constexpr std::chrono::milliseconds stop_grace_ms{1000};
  static constexpr std::chrono::milliseconds accept_retry_ms{1000};

  // `listener` must be blocking, as all sockets are here.
  ring_echo(common::unique_fd listener, const common::stop_signal& stop,
            const ring_options& options = {})
      : listener_{std::move(listener)}, ring_{options} {
    request_stop_poll(ring_, stop.fd());
    arm_accept();
  }

  void run() {
    while (!done()) turn();
  }

  // One round of the loop: makes one system call, then handles everything that has completed.
  void turn() {
    (void)ring_.submit_and_wait(wait_at_most());  // reap() and the clock tell what ended the wait
    for (const completion& done : ring_.reap()) handle(done);
    if (wake_at_ && clock::now() >= *wake_at_) on_wake_up();
  }

  [[nodiscard]] std::size_t connection_count() const noexcept { return connections_.size(); }

 private:
  using clock = std::chrono::steady_clock;

  void handle(const completion& done) {
    const tag from = unpack(done.user_data);
    switch (from.what) {
      case operation::accept:
        return on_accept(done.res);
      case operation::recv:
      case operation::send:
        return advance(from, done.res);
      case operation::stop_poll:
        return begin_stop();
      case operation::cancel:
        return;  // the canceled accept has a completion of its own
    }
  }

  // A recv or a send has completed; from.what says which. Finds its connection, from.whose, with
  // connections_.find(). If that connection is gone, does nothing. Otherwise passes `res` to the
  // connection's on_recv() or on_send(). Each of them returns a `next`, the step to take now:
  // request_recv(), request_send() or remove().
  void advance(const tag& from, std::int32_t res) {
    COURSE_TODO("05.2");
  }

  // An accept has ended: `res` is a client's descriptor, or -errno. If `client` is valid(), inserts
  // it into connections_ as a ring_connection, calls request_recv() for that connection, and then
  // arm_accept() for the next client. Otherwise, common::classify_accept_errno(-res) returns one of
  // the four kinds of common::accept_failure (common/runtime/errors.hpp). You decide for each kind:
  // arm_accept() now, pause_accepting(), or give up with common::throw_error(res, "accept").
  void on_accept(std::int32_t res) {
    accepting_ = false;
    common::unique_fd client{res};  // a negative number closes nothing
    if (stopping()) return;         // `res` may be -ECANCELED: begin_stop() cancels the accept
    COURSE_TODO("05.2");
  }

  // Requests the next accept, and records that it is in flight, so that begin_stop() can cancel it.
  void arm_accept() {
    request_accept(ring_, listener_.get());
    accepting_ = true;
  }

  // Requests no accept until a client leaves, or accept_retry_ms have passed. (Another process may
  // free a descriptor meanwhile.)
  void pause_accepting() { wake_at_ = clock::now() + accept_retry_ms; }

  // Closes the connection. If accepting was paused, the loop accepts again immediately.
  void remove(const slot_id& whose) {
    connections_.erase(whose);
    if (wake_at_ && !stopping()) wake_at_ = clock::now();  // its descriptor is free now
  }

  // Accepts no more clients. After SHUT_RD a recv gives what has arrived and then EOF, so most
  // connections end by themselves. Linux still delivers bytes that come later, so only the grace
  // period stops a client that keeps sending.
  void begin_stop() {
    stop_ = stop_phase::draining;
    wake_at_ = clock::now() + stop_grace_ms;
    if (accepting_) cancel_accept(ring_);  // closing the listener would not end the accept
    listener_.reset();
    connections_.for_each([](const ring_connection& each) { each.shutdown(SHUT_RD); });
  }

  // wake_at_ has passed: the pause in accepting or a grace period of the stop is over.
  void on_wake_up() {
    wake_at_.reset();
    if (!stopping()) return arm_accept();
    if (stop_ == stop_phase::draining) {
      stop_ = stop_phase::ending;
      wake_at_ = clock::now() + stop_grace_ms;
      connections_.for_each([](const ring_connection& each) { each.shutdown(SHUT_RDWR); });
    } else {
      stop_ = stop_phase::abandoned;  // the ring's destructor cancels what is left
    }
  }

  [[nodiscard]] bool stopping() const noexcept { return stop_ != stop_phase::none; }

  [[nodiscard]] bool done() const noexcept {
    return stop_ == stop_phase::abandoned || (stopping() && connections_.empty() && !accepting_);
  }

  [[nodiscard]] std::optional<std::chrono::milliseconds> wait_at_most() const {
    if (!wake_at_) return std::nullopt;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*wake_at_ - clock::now());
    return std::max(left, std::chrono::milliseconds{0});
  }

  enum class stop_phase { none, draining, ending, abandoned };

  common::unique_fd listener_;
  slot_table<ring_connection> connections_;
  ring ring_;               // destroyed before connections_, whose buffers the kernel may write to
  bool accepting_ = false;  // an accept is in flight
  std::optional<clock::time_point> wake_at_;  // to accept again, or to go on with the stop
  stop_phase stop_ = stop_phase::none;
};

}  // namespace uring
