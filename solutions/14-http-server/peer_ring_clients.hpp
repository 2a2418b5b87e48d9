// SPDX-License-Identifier: MIT
// The clients of 14-peer-ring: the state machine of chapter 05, for chapter 14's answers.
// Owns     the clients. One request is in flight for each client until the client is removed.
// Lifetime destroy the ring first, because until then the kernel may write to the clients' memory.
// Threads  the ring's.
// Errors   std::system_error from ring::get_sqe(); a client's errors end that client only.
// Rule     a client is removed only when its request has completed.
#pragma once

#include <liburing.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "peer_dialog.hpp"
#include "peer_options.hpp"
#include "peer_site.hpp"
#include "ring.hpp"
#include "slot_table.hpp"
#include "unique_fd.hpp"

namespace uring::http {

struct peer_client {
  peer_client(common::unique_fd accepted, peer_site& site, std::chrono::milliseconds limit)
      : socket{std::move(accepted)}, dialog{site}, patience{limit} {}

  common::unique_fd socket;
  peer_dialog dialog;
  std::chrono::milliseconds patience;
  peer_clock::time_point waits_since = peer_clock::now();
  std::size_t goodbye_left = peer_goodbye_bytes_max;
  bool is_leaving = false;
  std::array<char, peer_piece_bytes> piece;
};

inline void request_receive(ring& to, const slot_id& whose, peer_client& client) {
  ::io_uring_sqe& sqe = to.get_sqe();
  ::io_uring_prep_recv(&sqe, client.socket.get(), client.piece.data(), client.piece.size(), 0);
  ::io_uring_sqe_set_data64(&sqe, pack({operation::recv, whose}));
}

inline void request_send_of(ring& to, const slot_id& whose, const peer_client& client) {
  const std::string_view text = client.dialog.unsent();
  ::io_uring_sqe& sqe = to.get_sqe();
  ::io_uring_prep_send(&sqe, client.socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  ::io_uring_sqe_set_data64(&sqe, pack({operation::send, whose}));
}

// Makes the client's request complete soon: with an error, EOF, or bytes that had come before.
inline void give_up(const peer_client& client) {
  if (!client.dialog.unsent().empty()) close_will_reset(client.socket.get());
  ::shutdown(client.socket.get(), SHUT_RDWR);
}

class peer_ring_clients {
 public:
  peer_ring_clients(ring& through, const peer_options& options)
      : ring_{through}, patience_{options.patience_ms}, site_{options.root} {}

  void add(common::unique_fd socket) {
    const slot_id id =
        table_.insert(std::make_unique<peer_client>(std::move(socket), site_, patience_));
    advance(id, *table_.find(id));
  }

  // Gives up the clients that have let us wait too long.
  void sweep() {
    table_.for_each([this](const peer_client& each) {
      if (now_ >= each.waits_since + each.patience) give_up(each);
    });
  }
  void give_up_all() { table_.for_each(give_up); }
  // Bytes that have come can still be read, and are answered.
  void end_reading() {
    table_.for_each([](const peer_client& each) { ::shutdown(each.socket.get(), SHUT_RD); });
  }

  [[nodiscard]] bool empty() const noexcept { return table_.empty(); }
  // Call it once a turn, so that the clock is read once, and not for each client.
  void set_now(peer_clock::time_point now) noexcept { now_ = now; }

  // --8<-- [start:machine]
  // A recv or a send has completed.
  void on_client(const tag& from, std::int32_t res) {
    peer_client* const client = table_.find(from.whose);
    if (client == nullptr) return;
    const bool is_passing = res == -EAGAIN || res == -EINTR;
    if (res < 0 && !is_passing) return table_.erase(from.whose);
    const std::size_t bytes = res > 0 ? static_cast<std::size_t>(res) : 0;
    if (from.what == operation::send) {
      client->dialog.sent(bytes);
    } else if (res == 0) {
      return table_.erase(from.whose);
    } else if (client->is_leaving) {
      client->goodbye_left -= std::min(client->goodbye_left, bytes);
    } else {
      client->dialog.take({client->piece.data(), bytes});
    }
    advance(from.whose, *client);
  }

 private:
  // Starts a client's next request: one is always in flight, until the client is removed.
  void advance(const slot_id& whose, peer_client& client) {
    if (client.is_leaving) {
      return client.goodbye_left > 0 ? request_receive(ring_, whose, client) : table_.erase(whose);
    }
    client.waits_since = now_;
    switch (client.dialog.next()) {
      case peer_dialog::wants::to_receive:
        return request_receive(ring_, whose, client);
      case peer_dialog::wants::to_send:
        return request_send_of(ring_, whose, client);
      case peer_dialog::wants::to_leave:
        client.is_leaving = true;
        client.patience = peer_goodbye_ms;
        ::shutdown(client.socket.get(), SHUT_WR);
        return request_receive(ring_, whose, client);
      case peer_dialog::wants::to_break:
        close_will_reset(client.socket.get());
        return table_.erase(whose);
    }
  }
  // --8<-- [end:machine]

  ring& ring_;
  std::chrono::milliseconds patience_;
  peer_site site_;
  slot_table<peer_client> table_;
  peer_clock::time_point now_ = peer_clock::now();
};

}  // namespace uring::http
