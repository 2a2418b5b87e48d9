// SPDX-License-Identifier: MIT
// One GET that ends when its source is canceled, wherever it is: every wait in it listens.
// Owns     the connection, while it runs.
// Lifetime `context` and `source` must outlive run().
// Threads  the one that runs `context`; resolving a name blocks it.
// Errors   std::runtime_error if the answer is not 2xx, is broken or ends early; std::system_error
//          from sockets, also when it was canceled (ECANCELED).
// Rule     head and body are bounded, by head_bytes_max and body_bytes_max.
// See      http_get.hpp of chapter 07, whose grammar this uses
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "body_decoder.hpp"
#include "bounded_io.hpp"
#include "cancel_source.hpp"
#include "errors.hpp"
#include "http_get.hpp"
#include "io_context.hpp"
#include "operations.hpp"
#include "resolve.hpp"
#include "response_head.hpp"
#include "task.hpp"
#include "unique_fd.hpp"

namespace uring {

class bounded_get {
 public:
  static constexpr std::size_t body_bytes_max = 64 * 1024 * 1024;
  static constexpr std::size_t head_bytes_max = http_input::head_bytes_max;

  bounded_get(io_context& context, cancel_source& source) noexcept
      : context_{context}, source_{source} {}

  // The body.
  task<std::string> run(const get_request& request) {
    const common::unique_fd socket = co_await connect(request);
    co_await send_text(socket.get(), to_text(request));
    co_return co_await receive_body(socket.get());
  }

 private:
  task<common::unique_fd> connect(const get_request& request) {
    const std::vector<peer_address> addresses = resolve(request.host, request.port);
    int error = 0;
    for (const peer_address& each : addresses) {
      common::unique_fd socket{::socket(each.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)};
      if (!socket.valid()) common::throw_errno("socket");
      const io_result connected = co_await cancelable(
          connect_op(context_, socket.get(), each.generic(), each.bytes), source_);
      if (connected) co_return socket;
      error = connected.error();
    }
    common::throw_error(error, "connect");
  }

  task<> send_text(int socket, std::string text) {
    std::span<const std::byte> unsent = std::as_bytes(std::span{text});
    while (!unsent.empty()) {
      const io_result sent = co_await cancelable(send_op(context_, socket, unsent), source_);
      if (!sent.is_passing()) unsent = unsent.subspan(sent.or_throw("send"));
    }
  }

  // Appends what comes next. False at EOF.
  task<bool> receive_some(int socket, std::string& to) {
    std::array<char, 16 * 1024> buffer;
    for (;;) {
      const io_result received = co_await cancelable(
          recv_op(context_, socket, std::as_writable_bytes(std::span{buffer})), source_);
      if (received.is_passing()) continue;
      to.append(buffer.data(), received.or_throw("recv"));
      co_return received.count() > 0;
    }
  }

  task<response_head> receive_head(int socket, std::string& unread) {
    for (;;) {
      if (const std::optional<std::size_t> bytes = head_bytes(unread)) {
        response_head head = parse_response_head(std::string_view{unread}.substr(0, *bytes));
        unread.erase(0, *bytes);
        if (head.status >= 200) co_return head;  // those before it say nothing that a GET needs
        continue;
      }
      if (unread.size() >= head_bytes_max) throw bad_response{"its head is too large"};
      const bool more = co_await receive_some(socket, unread);
      if (!more) throw bad_response{"it ended before its head did"};
    }
  }

  task<std::string> receive_body(int socket) {
    std::string unread;
    const response_head head = co_await receive_head(socket, unread);
    if (head.status / 100 != 2) {
      throw bad_response{std::to_string(head.status) + " " + head.reason};
    }
    std::string body;
    body_decoder decoder{head};
    for (;;) {
      std::string_view rest = unread;
      while (!rest.empty() && !decoder.is_complete()) body += decoder.take(rest);
      unread.clear();
      if (body.size() > body_bytes_max) throw bad_response{"its body is too large"};
      if (decoder.is_complete()) co_return body;
      const bool more = co_await receive_some(socket, unread);
      if (!more) decoder.on_eof();
      if (!more && !decoder.is_complete()) throw bad_response{"it ended before its body did"};
    }
  }

  io_context& context_;
  cancel_source& source_;
};

}  // namespace uring
