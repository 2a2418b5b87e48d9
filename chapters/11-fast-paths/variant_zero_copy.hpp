// SPDX-License-Identifier: MIT
// The zero-copy kind: the kernel sends from the client's buffer, and says when the buffer is free.
// Owns     each client's buffer, in its frame.
// Lifetime as variant_client.hpp says.
// Threads  the one that runs the queue.
// Errors   how a connection ends concerns that client only. Where no more memory may be locked
//          (ENOMEM), the bytes are sent by a copy.
// Rule     a client that does not read delays the notification, and the frame waits for that. When
//          the grace period of a stop is over, the connection is reset.
#pragma once

#include <cerrno>
#include <cstddef>
#include <span>
#include <vector>

#include "connection_reset.hpp"
#include "task.hpp"
#include "variant_client.hpp"
#include "variant_kinds.hpp"
#include "zero_copy.hpp"

namespace uring {

// Sends all of `unsent`. False if the client is lost.
inline task<bool> send_by_copy(variant_client client, std::span<std::byte> unsent) {
  while (!unsent.empty()) {
    const io_result sent = co_await send_plain(client, unsent);
    if (sent.is_passing()) continue;
    if (!sent) co_return false;
    unsent = unsent.subspan(sent.count());
  }
  co_return true;
}

inline task<> echo_zero_copy(variant_client client, own_buffers& shared) {
  std::vector<std::byte> buffer(shared.bytes);
  const reset_on_cancel hang_up{client.given_up, client.socket()};
  while (true) {
    const io_result received = co_await recv_plain(client, buffer);
    if (received.is_passing()) continue;
    if (!received || received.count() == 0) co_return;
    std::span<std::byte> unsent = std::span{buffer}.first(received.count());
    while (!unsent.empty()) {
      const zero_copy_sent sent = co_await send_zc_op(client.given_up, client.socket(), unsent);
      if (sent.result.error() == ENOMEM) {
        const bool all = co_await send_by_copy(client, unsent);
        if (!all) co_return;
        break;
      }
      if (sent.result.is_passing()) continue;
      if (!sent.result) co_return;
      unsent = unsent.subspan(sent.result.count());
    }
  }
}

}  // namespace uring
