// SPDX-License-Identifier: MIT
// The echo for all clients, each of which has one multishot recv for all of its bytes.
// Owns     nothing. One object serves all clients; the state of each client is local to its run().
// Lifetime the pool and the sources must outlive every run().
// Threads  the one that runs the queue.
// Errors   how a connection ends concerns that client only.
// Rule     neither the echo nor its stream holds a buffer while we wait for the client.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <vector>

#include "buffer_pool.hpp"
#include "cancel_source.hpp"
#include "finally.hpp"
#include "multishot_operations.hpp"
#include "operations.hpp"
#include "pool_echo.hpp"
#include "task.hpp"
#include "todo.hpp"

namespace uring {

class stream_echo {
 public:
  // A cancel of `waiting` ends waits for bytes; a cancel of `given_up` also ends waits to send.
  stream_echo(buffer_pool& pool, cancel_source& waiting, cancel_source& given_up) noexcept
      : pool_{pool}, waiting_{waiting}, given_up_{given_up}, one_by_one_{pool, waiting, given_up} {}

  // --8<-- [start:run]
  task<> run(int socket) {
    recv_stream arriving{waiting_, {socket, &pool_}};
    co_await finally(echo(socket, arriving), arriving.end());
    // Bytes that have arrived before the stop are echoed all the same, by chapter 09's code.
    if (waiting_.is_canceled()) co_await one_by_one_.run(socket);
  }
  // --8<-- [end:run]

 private:
  task<> echo(int socket, recv_stream& arriving) {
    for (;;) {
      received got = co_await arriving.next();
      if (got.result.error() == ENOBUFS) {
        // Every buffer may have been returned since the kernel reported ENOBUFS. Then none is lent,
        // and a wait for the next return would not end.
        if (arriving.is_armed() || pool_.lent() == 0) continue;
        got = co_await recv_into_next_return(waiting_, socket, pool_);
      }
      if (got.result.error() == ECANCELED) co_return;
      if (got.result.is_passing()) continue;
      if (!got.result || got.result.count() == 0) co_return;
      const io_result sent =
          co_await send_op(given_up_, socket, got.bytes(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (!sent && !sent.is_passing()) co_return;
      const std::span<const std::byte> left = got.bytes().subspan(sent ? sent.count() : 0);
      if (left.empty()) continue;
      // The client does not read. Copy `left` into a vector, and end the lease of its buffer.
      // Decide what else holds buffers for this client, and what would take more while we wait. In
      // stream.hpp you need disarm(), size(), front() and take(). Then await
      // one_by_one_.send_rest() for all copied bytes, in the order in which they came. If it
      // returns false, the client is lost: co_return.
      // --8<-- [start:task-10-5]
      std::vector<std::byte> rest{left.begin(), left.end()};
      got.lease = {};
      co_await arriving.disarm();
      while (arriving.size() > 0 && !arriving.front().bytes().empty()) {
        const received more = arriving.take();
        rest.insert(rest.end(), more.bytes().begin(), more.bytes().end());
      }
      const bool all = co_await one_by_one_.send_rest(socket, rest);
      if (!all) co_return;
      // --8<-- [end:task-10-5]
    }
  }

  buffer_pool& pool_;
  cancel_source& waiting_;
  cancel_source& given_up_;
  pool_echo one_by_one_;
};

}  // namespace uring
