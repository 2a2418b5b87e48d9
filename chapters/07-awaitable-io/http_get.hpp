// SPDX-License-Identifier: MIT
// One GET over HTTP/1.1: tries the host's addresses in turn, then receives the head and the body.
// Owns     the connection, while it runs.
// Lifetime the queue, `request` and `into` must live until the task has ended.
// Threads  the one that runs the queue; resolve() blocks it at the beginning.
// Errors   std::runtime_error if no address is found or accepts, or the answer is broken, cut off
//          or not 2xx; std::system_error (sockets and files); std::invalid_argument (to_text()).
// Rule     the head is bounded by head_bytes_max. The body is not: each piece is passed on as it
//          comes, to an object that has begin(), add() and keep(), such as a download.
// See      rfc9112
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "body_decoder.hpp"
#include "connect_to_any.hpp"
#include "operations.hpp"
#include "resolve.hpp"
#include "response_head.hpp"
#include "task.hpp"
#include "transfers.hpp"
#include "unique_fd.hpp"

namespace uring::http {

struct get_request {
  std::string host;
  std::uint16_t port = 80;
  std::string path;
};

// Throws std::invalid_argument if `part` is empty or has a character that ends a line or a word.
inline void refuse_gaps(const std::string& part) {
  const auto is_gap = [](unsigned char c) { return c <= ' ' || c == 0x7f; };
  if (part.empty() || std::ranges::any_of(part, is_gap)) {
    throw std::invalid_argument{"HOST and PATH have neither blanks nor control characters"};
  }
}

// A literal IPv6 address is put in brackets, and the default port is left out.
[[nodiscard]] inline std::string to_text(const get_request& request) {
  refuse_gaps(request.host);
  refuse_gaps(request.path);
  if (!request.path.starts_with('/')) throw std::invalid_argument{"PATH begins with a slash"};
  const bool is_ipv6 = request.host.find(':') != std::string::npos;
  std::string host = is_ipv6 ? "[" + request.host + "]" : request.host;
  if (request.port != 80) host += ":" + std::to_string(request.port);
  return "GET " + request.path + " HTTP/1.1\r\nHost: " + host +
         "\r\nUser-Agent: ring-by-ring\r\nAccept: */*\r\nConnection: close\r\n\r\n";
}

// The receiving side of a connection: a buffer, and the part of it that has not been parsed yet.
class response_input {
 public:
  static constexpr std::size_t head_bytes_max = 16 * 1024;

  response_input(io_handle io, int socket) noexcept : io_{io}, socket_{socket} {}
  response_input(response_input&&) = delete;  // the kernel writes into the buffer

  // Receives the final head. Heads with a status of 1xx may come before it, and are skipped.
  task<response_head> head() {
    while (true) {
      const std::size_t bytes = co_await bytes_of_head();
      response_head parsed = parse_response_head(unread_.substr(0, bytes));
      unread_.remove_prefix(bytes);
      if (parsed.status >= 200) co_return parsed;
    }
  }

  // Receives the whole body, and gives it to `into`.
  template <typename Into>
  task<> body(const response_head& head, Into& into) {
    body_decoder decoder{head};
    while (true) {
      const std::string_view data = decoder.take(unread_);
      if (!data.empty()) co_await into.add(std::as_bytes(std::span{data}));
      if (decoder.is_complete()) co_return;
      if (!unread_.empty()) continue;
      const bool more = co_await receive();
      if (!more) decoder.on_eof();
      if (!more && !decoder.is_complete()) throw bad_response{"it ended before its body did"};
    }
  }

 private:
  task<std::size_t> bytes_of_head() {
    while (true) {
      if (const auto bytes = head_bytes(unread_)) co_return *bytes;
      if (unread_.size() == buffer_.size()) {
        throw bad_response{"its head is larger than " + std::to_string(head_bytes_max) + " bytes"};
      }
      const bool more = co_await receive();
      if (!more) throw bad_response{"it ended before its head did"};
    }
  }

  // Adds the next bytes to `unread_`. Returns false at EOF.
  task<bool> receive() {
    // Moves unread_ to the front, so that there is room after it. The two places may overlap.
    if (!unread_.empty()) std::memmove(buffer_.data(), unread_.data(), unread_.size());
    unread_ = {buffer_.data(), unread_.size()};
    const std::span<char> room = std::span{buffer_}.subspan(unread_.size());
    while (true) {
      const io_result received = co_await recv_op(io_, socket_, std::as_writable_bytes(room));
      if (received.is_passing()) continue;
      const std::size_t bytes = received.or_throw("recv");
      unread_ = {buffer_.data(), unread_.size() + bytes};
      co_return bytes > 0;
    }
  }

  io_handle io_;
  int socket_;
  std::array<char, head_bytes_max> buffer_;
  std::string_view unread_;  // a part of buffer_
};

template <typename Into>
task<> get(io_handle io, const get_request& request, Into& into) {
  const std::string text = to_text(request);
  std::vector<peer_address> addresses = resolve(request.host, request.port);
  const common::unique_fd socket = co_await connect_to_any(io, std::move(addresses));
  co_await send_all(io, socket.get(), std::as_bytes(std::span{text}));

  response_input input{io, socket.get()};
  const response_head head = co_await input.head();
  if (head.status / 100 != 2) {
    throw bad_response{std::to_string(head.status) + " " + head.reason};
  }
  co_await into.begin();
  co_await input.body(head, into);
  co_await into.keep();
}

}  // namespace uring::http
