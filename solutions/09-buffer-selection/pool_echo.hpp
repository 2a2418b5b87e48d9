// SPDX-License-Identifier: MIT
// The echo for all clients, in buffers that they share. A silent client has no buffer.
// Owns     nothing. One object serves all clients; the state of each client is local to its run().
// Lifetime the pool and the sources must outlive every run().
// Threads  the one that runs the queue.
// Errors   how a connection ends concerns that client only.
// Rule     no buffer is lent while we wait for the client, so the rest of a short send is copied.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <vector>

#include "buffer_pool.hpp"
#include "cancel_source.hpp"
#include "operations.hpp"
#include "pool_operations.hpp"
#include "task.hpp"
#include "todo.hpp"

namespace uring {

class pool_echo {
 public:
  // A cancel of `waiting` ends waits for bytes; a cancel of `given_up` also ends waits to send.
  pool_echo(buffer_pool& pool, cancel_source& waiting, cancel_source& given_up) noexcept
      : pool_{pool}, waiting_{waiting}, given_up_{given_up} {}

  task<> run(int socket) {
    while (!given_up_.is_canceled()) {
      // During a stop, the recv takes only bytes that have already come.
      const bool stops = waiting_.is_canceled();
      cancel_source& source = stops ? given_up_ : waiting_;
      received got = co_await recv_op(source, socket, pool_, stops ? MSG_DONTWAIT : 0);
      if (got.result.error() == ENOBUFS) {
        // Every buffer may have been returned since the kernel reported ENOBUFS. Then none is lent,
        // and a wait for the next return would not end.
        if (pool_.lent() == 0) continue;
        got = co_await recv_into_next_return(source, socket, pool_);
      }
      if (stops && got.result.error() == EAGAIN) co_return;  // nothing more has arrived
      if (got.result.error() == ECANCELED || got.result.is_passing()) continue;
      if (!got.result || got.result.count() == 0) co_return;
      // Send got.bytes() back with send_op(), given_up_ and MSG_NOSIGNAL | MSG_DONTWAIT. This send
      // never waits, so it may be short. If it ends with an error that is_passing(), such as
      // -EAGAIN, nothing was sent. After any other error the client is lost: co_return. If all
      // bytes were sent, continue. Otherwise await send_rest(), which waits for the client, and
      // co_return if it returns false. Before this wait, decide which bytes you must copy into a
      // vector, and end the lease, with got.lease = {}.
      // --8<-- [start:task-09-4]
      const io_result sent =
          co_await send_op(given_up_, socket, got.bytes(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (!sent && !sent.is_passing()) co_return;
      const std::span<const std::byte> left = got.bytes().subspan(sent ? sent.count() : 0);
      if (left.empty()) continue;
      const std::vector<std::byte> rest{left.begin(), left.end()};
      got.lease = {};
      const bool all = co_await send_rest(socket, rest);
      if (!all) co_return;
      // --8<-- [end:task-09-4]
    }
  }

  // Sends the bytes that the client did not take immediately, however long that takes. False if the
  // client is lost.
  task<bool> send_rest(int socket, std::span<const std::byte> rest) {
    while (!rest.empty()) {
      const io_result sent = co_await send_op(given_up_, socket, rest);
      if (sent.is_passing()) continue;
      if (!sent) co_return false;
      rest = rest.subspan(sent.count());
    }
    co_return true;
  }

 private:
  buffer_pool& pool_;
  cancel_source& waiting_;
  cancel_source& given_up_;
};

}  // namespace uring
