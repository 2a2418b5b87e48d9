// SPDX-License-Identifier: MIT
// Accepts clients, starts a session for each in the chosen style, and survives a failed accept.
// Owns     the acceptor and the timer that waits for a free descriptor.
// Lifetime run the io_context to its end before the acceptor_loop is destroyed.
// Threads  call accept() before run(), and close() in the strand `control`, where the handlers run.
// Errors   a client that has gone is skipped. Without a free descriptor the loop waits retry_ms. If
//          the listener itself fails, run() returns and throw_if_broken() throws.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "callback_echo.hpp"
#include "coroutine_echo.hpp"
#include "errors.hpp"
#include "log.hpp"
#include "open_sockets.hpp"
#include "unique_fd.hpp"

namespace completion {

using strand = asio::strand<asio::io_context::executor_type>;

enum class style { callbacks, coroutines };

class acceptor_loop {
 public:
  static constexpr std::chrono::milliseconds retry_ms{100};

  acceptor_loop(asio::io_context& io, const strand& control, common::unique_fd listener,
                style sessions, open_sockets& sockets)
      : io_{io},
        acceptor_{control, tcp::v4(), listener.release()},
        retry_{control},
        sessions_{sessions},
        sockets_{sockets} {}

  // The handler may capture `this` alone, because this object lives until run() has returned.
  void accept() {
    acceptor_.async_accept(io_, [this](const std::error_code& error, tcp::socket client) {
      if (!acceptor_.is_open()) return;
      if (error) return after_failure(error);
      accept();  // first: if a session cannot start, the next client is still accepted
      start_session(std::move(client));
    });
  }

  void close() {
    acceptor_.close();
    retry_.cancel();
  }

  void throw_if_broken() const {
    if (broken_) throw std::system_error{broken_, "accept"};
  }

 private:
  void after_failure(const std::error_code& error) {
    switch (common::classify_accept_errno(error.value())) {
      case common::accept_failure::out_of_descriptors:
        retry_.expires_after(retry_ms);
        return retry_.async_wait([this](const std::error_code& canceled) {
          if (!canceled) accept();
        });
      case common::accept_failure::listener_broken:
        broken_ = error;
        return io_.stop();
      default:
        accept();
    }
  }

  void start_session(tcp::socket client) {
    if (sessions_ == style::callbacks) {
      std::make_shared<callback_session>(std::move(client), sockets_)->receive();
    } else {
      asio::co_spawn(io_, echo(std::move(client), sockets_), &report_escaped);
    }
  }

  // co_spawn passes an exception that escapes from the coroutine to this handler. With `detached`
  // instead of a handler, the exception would be lost without a message.
  static void report_escaped(const std::exception_ptr& escaped) {
    if (!escaped) return;
    try {
      std::rethrow_exception(escaped);
    } catch (const std::exception& error) {
      common::log(std::string{"a session ended: "} + error.what());
    }
  }

  asio::io_context& io_;
  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  style sessions_;
  open_sockets& sockets_;
  std::error_code broken_;  // set in the strand, read once run() has returned
};

}  // namespace completion
