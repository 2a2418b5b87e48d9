// SPDX-License-Identifier: MIT
// Several GETs at the same time, a window of them in flight, each with a deadline for all of it.
// Owns     every connection while it is used, and the results.
// Lifetime `context` must outlive it.
// Threads  the one that runs `context`; resolving a name blocks it.
// Errors   how a fetch ended is in its result, as a sentence if it failed; nothing throws for that.
// Rule     a fetch ends with its deadline or when it is canceled, wherever it is: every wait in it
//          listens to one source.
// See      http_get.hpp of chapter 07, whose grammar this uses
#pragma once

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "body_decoder.hpp"
#include "bounded_io.hpp"
#include "cancel_source.hpp"
#include "errors.hpp"
#include "http_get.hpp"
#include "in_window.hpp"
#include "io_context.hpp"
#include "operations.hpp"
#include "resolve.hpp"
#include "response_head.hpp"
#include "task.hpp"
#include "unique_fd.hpp"
#include "when_any.hpp"

namespace uring {

struct fetched {
  std::string body;
  std::string failure;  // a sentence, or empty
};

enum class on_failure { go_on, cancel_the_others };

struct fetch_options {
  std::size_t window = 4;
  std::chrono::milliseconds timeout{10'000};  // for one fetch, from its connect to its last byte
  on_failure after = on_failure::go_on;
};

// "http://HOST:PORT/PATH", "HOST:PORT/PATH", "[::1]:8000": what is left out is http, 80 and "/".
[[nodiscard]] get_request parse_address(std::string_view address);

class fetching {
 public:
  static constexpr std::size_t body_bytes_max = 64 * 1024 * 1024;
  static constexpr std::size_t head_bytes_max = http_input::head_bytes_max;

  fetching(io_context& context, const fetch_options& options) noexcept
      : context_{context}, options_{options} {}
  fetching(fetching&&) = delete;  // its tasks hold its address

  // The results in the order of `requests`, whatever the order of their ends.
  task<std::vector<fetched>> run(std::vector<get_request> requests) {
    std::vector<fetched> results(requests.size(), fetched{{}, "not begun: another one failed"});
    cancel_source all;
    const auto fetch_one = [&](std::size_t i) { return fetch(requests[i], results[i], all); };
    co_await in_window(all, options_.window, requests.size(), fetch_one);
    co_return results;
  }

 private:
  // --8<-- [start:fetch]
  // Whichever ends first, the answer or the deadline: the other one is canceled.
  task<> fetch(const get_request& request, fetched& into, cancel_source& all) {
    cancel_source own{all};
    into = co_await first_of(own, get(request, own), give_up(own));
    if (own_failure(into) && options_.after == on_failure::cancel_the_others) all.cancel();
  }

  task<fetched> give_up(cancel_source& own) {
    (void)co_await cancelable(timeout_op(context_, options_.timeout), own);
    const std::string limit = std::to_string(options_.timeout.count());
    co_return fetched{{}, "no complete answer within " + limit + " ms"};
  }
  // --8<-- [end:fetch]

  static task<fetched> first_of(cancel_source& own, task<fetched> answer, task<fetched> deadline) {
    first_result<fetched> first = co_await when_any(own, std::move(answer), std::move(deadline));
    co_return std::move(first.value);
  }

  // Not one that came of another's.
  static bool own_failure(const fetched& result) {
    return !result.failure.empty() && result.failure != canceled;
  }

  task<fetched> get(const get_request& request, cancel_source& own) {
    fetched result;
    try {
      const common::unique_fd socket = co_await connect(request, own);
      co_await send_text(socket.get(), to_text(request), own);
      result.body = co_await receive_body(socket.get(), own);
    } catch (const std::exception& error) {
      result.failure = own.is_canceled() ? canceled : error.what();
    }
    co_return result;
  }

  task<common::unique_fd> connect(const get_request& request, cancel_source& own) {
    const std::vector<peer_address> addresses = resolve(request.host, request.port);
    int error = 0;
    for (const peer_address& each : addresses) {
      common::unique_fd socket{::socket(each.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)};
      if (!socket.valid()) common::throw_errno("socket");
      const io_result connected =
          co_await cancelable(connect_op(context_, socket.get(), each.generic(), each.bytes), own);
      if (connected) co_return socket;
      error = connected.error();
    }
    common::throw_error(error, "connect");
  }

  task<> send_text(int socket, std::string text, cancel_source& own) {
    std::span<const std::byte> unsent = std::as_bytes(std::span{text});
    while (!unsent.empty()) {
      const io_result sent = co_await cancelable(send_op(context_, socket, unsent), own);
      if (!sent.is_passing()) unsent = unsent.subspan(sent.or_throw("send"));
    }
  }

  // Appends what comes next. False at EOF.
  task<bool> receive_some(int socket, std::string& to, cancel_source& own) {
    std::array<char, 16 * 1024> buffer;
    for (;;) {
      const io_result received = co_await cancelable(
          recv_op(context_, socket, std::as_writable_bytes(std::span{buffer})), own);
      if (received.is_passing()) continue;
      to.append(buffer.data(), received.or_throw("recv"));
      co_return received.count() > 0;
    }
  }

  task<response_head> receive_head(int socket, std::string& unread, cancel_source& own) {
    for (;;) {
      if (const std::optional<std::size_t> bytes = head_bytes(unread)) {
        response_head head = parse_response_head(std::string_view{unread}.substr(0, *bytes));
        unread.erase(0, *bytes);
        if (head.status >= 200) co_return head;  // those before it say nothing that a GET needs
        continue;
      }
      if (unread.size() >= head_bytes_max) throw bad_response{"its head is too large"};
      const bool more = co_await receive_some(socket, unread, own);
      if (!more) throw bad_response{"it ended before its head did"};
    }
  }

  task<std::string> receive_body(int socket, cancel_source& own) {
    std::string unread;
    const response_head head = co_await receive_head(socket, unread, own);
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
      const bool more = co_await receive_some(socket, unread, own);
      if (!more) decoder.on_eof();
      if (!more && !decoder.is_complete()) throw bad_response{"it ended before its body did"};
    }
  }

  static constexpr const char* canceled = "canceled: another one failed";

  io_context& context_;
  fetch_options options_;
};

inline get_request parse_address(std::string_view address) {
  const std::string whole{address};
  if (address.starts_with("http://")) address.remove_prefix(7);
  get_request request;
  const std::size_t slash = std::min(address.find('/'), address.size());
  request.path = slash == address.size() ? "/" : address.substr(slash);
  std::string_view host = address.substr(0, slash);
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != host.npos && host.find(']', colon) == host.npos;
  if (has_port) {
    const std::uint64_t port = to_number(host.substr(colon + 1), 10);
    if (port == 0 || port > 65535) throw std::runtime_error{whole + " has no port"};
    request.port = static_cast<std::uint16_t>(port);
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) throw std::runtime_error{"“" + whole + "” names no host"};
  request.host = host;
  return request;
}

}  // namespace uring
