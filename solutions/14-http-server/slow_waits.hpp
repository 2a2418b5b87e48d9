// SPDX-License-Identifier: MIT
// Waits for bytes that come late, in part, or not at all. Each is a task with a frame of its own,
// which a quick client never needs.
// Lifetime the link must outlive the task.
// Threads  the one that runs the queue.
// Errors   false: the client is lost, has ended its stream, or is out of time.
// Rule     while we wait for the client, no buffer of the pool is held for it: neither by our code
//          nor by an armed request.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "client_link.hpp"
#include "connection_reset.hpp"
#include "operations.hpp"
#include "pool_operations.hpp"
#include "task.hpp"

namespace uring::http {

inline constexpr std::size_t goodbye_bytes_max = 1024 * 1024;

// Whether the client has reset its connection. If the reset came right behind a part of a request,
// a multishot recv may report only the part: the kernel then waits for the next change of the
// socket, but the reset was the last one. So call this whenever a request is not whole.
[[nodiscard]] inline bool has_reset(const client_link& link) noexcept {
  ::pollfd state{.fd = link.socket, .events = 0, .revents = 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & (POLLERR | POLLHUP)) != 0;
}

// The time is up. Looks once more, because an idle client may have sent a request meanwhile.
inline task<bool> look_once_more(client_link& link) {
  if (link.limit.what() != wait_for::request || link.given_up.is_canceled()) co_return false;
  link.is_ending = true;
  co_await link.arriving.disarm();
  if (link.arriving.size() > 0) co_return link.took(link.arriving.take());
  received got = co_await recv_op(link.given_up, link.socket, link.pool, MSG_DONTWAIT);
  co_return link.took(std::move(got));
}

// A wait has brought no bytes. `error` says why; it is 0 at the end of the client's stream. Waits
// again if more bytes may come.
inline task<bool> receive_after(client_link& link, int error) {
  for (;;) {
    received got{.result = io_result{-EAGAIN}, .lease = {}};
    if (error == ECANCELED) {
      const bool more = co_await look_once_more(link);
      co_return more;
    }
    if (error == ENOBUFS && !link.arriving.is_armed() && link.pool.lent() > 0) {
      got = co_await recv_into_next_return(link.limit.source(), link.socket, link.pool);
    } else if (error == ENOBUFS || error == EAGAIN || error == EINTR) {
      got = co_await link.next();
    } else {
      co_return false;
    }
    error = got.result.error();
    if (link.took(std::move(got))) co_return true;
  }
}

// Waits for the next bytes. For callers that can afford a coroutine frame.
inline task<bool> receive(client_link& link) {
  received got = co_await link.next();
  const int error = got.result.error();
  if (link.took(std::move(got))) co_return true;
  const bool more = co_await receive_after(link, error);
  co_return more;
}

// Returns the client's buffers to the pool, as in chapter 10, task 5.
inline task<> let_go_of_buffers(client_link& link) {
  link.input.keep();
  co_await link.arriving.disarm();
  while (link.arriving.size() > 0 && !link.arriving.front().bytes().empty()) {
    link.input.take_copy(link.arriving.take());
  }
}

// The socket did not take all of `out`. Sends the rest as long as the client takes bytes in time.
inline task<bool> send_rest(client_link& link, io_result sent) {
  if (!sent && !sent.is_passing()) co_return false;
  co_await let_go_of_buffers(link);
  std::string_view left = link.out.text().substr(sent ? sent.count() : 0);
  while (!left.empty()) {
    link.limit.start(wait_for::room);
    const io_result more =
        co_await send_op(link.limit.source(), link.socket, std::as_bytes(std::span{left}));
    if (more.is_passing()) continue;
    if (more.error() == ECANCELED) reset_connection(link.socket);  // a part must not look whole
    if (!more) co_return false;
    left.remove_prefix(more.count());
  }
  link.limit.stop();
  link.out.clear();
  co_return true;
}

// Sends all of `out`.
inline task<bool> send_out(client_link& link) {
  const io_result sent = co_await link.send_now();
  if (link.has_sent_all(sent)) co_return true;
  const bool all = co_await send_rest(link, sent);
  co_return all;
}

// Ends our side, and reads until the client has ended its own. With bytes unread, close() would
// send a reset, which overtakes the answer.
inline task<> say_goodbye(client_link& link) {
  (void)::shutdown(link.socket, SHUT_WR);  // a request for it would wait behind opens of files
  link.limit.start(wait_for::goodbye);
  link.input.drop();
  std::size_t left = goodbye_bytes_max;
  while (left > 0) {
    const received got = co_await link.next();
    if (got.bytes().empty()) co_return;
    left -= std::min(left, got.bytes().size());
  }
}

}  // namespace uring::http
