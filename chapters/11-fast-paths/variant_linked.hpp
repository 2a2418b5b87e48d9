// SPDX-License-Identifier: MIT
// The linked kind: the answer and the wait for the next message are one submission.
// Owns     each client's buffer, in its frame.
// Lifetime as variant_client.hpp says.
// Threads  the one that runs the queue.
// Errors   how a connection ends concerns that client only.
// Rule     a send is linked to the recv after it, never a recv to the send after it: the number of
//          bytes to send is not known before the recv has completed.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <span>
#include <vector>

#include "cancel_source.hpp"
#include "linked.hpp"
#include "operations.hpp"
#include "task.hpp"
#include "variant_client.hpp"

namespace uring {

// At a stop no cancel finds a recv that waits behind its send. So the stop shuts the socket down:
// after SHUT_RD a recv gives what has arrived, and then EOF, whenever it starts.
class no_more_bytes final : public cancel_target {
 public:
  explicit no_more_bytes(int socket) noexcept : socket_{socket} {}
  void ask_to_end() override { ::shutdown(socket_, SHUT_RD); }

 private:
  int socket_;
};

// The recv and the send share the buffer: the kernel receives only when all bytes have been sent.
// This order needs MSG_WAITALL, because without this flag a short send would not break the link.
inline task<> echo_linked(variant_client client, own_buffers& shared) {
  constexpr int send_flags = MSG_NOSIGNAL | MSG_WAITALL;
  const io_handle io = client.given_up;
  std::vector<std::byte> buffer(shared.bytes);
  no_more_bytes at_stop{client.socket()};
  client.waiting.watch(at_stop);
  std::span<std::byte> unsent;
  while (true) {
    if (unsent.empty()) {
      const io_result first = co_await recv_op(io, client.socket(), buffer);
      if (first.is_passing()) continue;
      if (!first || first.count() == 0) co_return;
      unsent = std::span{buffer}.first(first.count());
    }
    const auto both = co_await linked(send_op(io, client.socket(), unsent, send_flags),
                                      recv_op(io, client.socket(), buffer));
    const auto& [sent, received] = both;
    if (!sent && !sent.is_passing()) co_return;
    unsent = unsent.subspan(sent ? sent.count() : 0);
    if (!unsent.empty() || received.is_passing()) continue;  // the link broke, or nothing came
    if (!received || received.count() == 0) co_return;
    unsent = std::span{buffer}.first(received.count());
  }
}

}  // namespace uring
