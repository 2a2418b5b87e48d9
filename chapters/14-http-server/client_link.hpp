// SPDX-License-Identifier: MIT
// One client's connection, as bytes that come and go. It waits for the client, and no code in
// this file is about HTTP.
// Owns     the stream of received bytes, those not read yet, those to be sent, and the time limit.
// Lifetime it must not move from the first wait until end() has completed. The site, the source and
//          the socket must outlive it.
// Threads  the one that runs the queue.
// Errors   a wait returns false if the client is lost, has ended its stream, or is out of time.
// Rule     while we wait for the client, no buffer of the pool is held for it: neither by our code
//          nor by an armed request. One send is in flight at a time.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <span>
#include <utility>

#include "cancel_source.hpp"
#include "http_site.hpp"
#include "multishot_operations.hpp"
#include "next_within.hpp"
#include "operations.hpp"
#include "request_input.hpp"
#include "send_blocks.hpp"
#include "task.hpp"
#include "time_limits.hpp"

namespace uring::http {

struct client_link {
  static constexpr std::size_t items_max = 4;  // buffers that one client may fill before we look

  client_link(http_site& site, cancel_source& gives_up, int client)
      : socket{client},
        limit{site.limits, gives_up, client},
        out{site.blocks},
        pool{site.pool},
        given_up{gives_up},
        arriving{gives_up, {client, &site.pool}, items_max} {}

  const int socket;
  time_limit limit;  // of the present wait
  request_input input;
  send_block out;
  buffer_pool& pool;
  cancel_source& given_up;
  recv_stream arriving;
  bool is_ending = false;  // the client's time is up, so the next request, if any, is the last one

  // Waits for bytes, until limit.source() is canceled: received got = co_await link.next();
  [[nodiscard]] auto next() {
    input.keep();
    return patient_next{arriving, limit.source()};
  }

  // Takes the bytes that have come. If there are none, returns false: then call receive_after() of
  // slow_waits.hpp.
  [[nodiscard]] bool took(received got) {
    if (got.bytes().empty()) return false;
    input.take(std::move(got));
    return true;
  }

  // Sends as much of `out` as the socket takes now: io_result sent = co_await link.send_now();
  [[nodiscard]] auto send_now() {
    input.keep();
    return send_op(given_up, socket, std::as_bytes(std::span{out.text()}),
                   MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  task<> end() { return arriving.end(); }

  // True if `sent` says that all of `out` was sent. Then the block of `out` is returned.
  [[nodiscard]] bool has_sent_all(const io_result& sent) noexcept {
    if (!sent || sent.count() < out.text().size()) return false;
    out.clear();
    return true;
  }
};

}  // namespace uring::http
