// SPDX-License-Identifier: MIT
// 14-peer-threads: chapter 14's answers from a server with a thread for each connection, as in
// chapter 01.
//
//   ./course run 14:peer-threads -- --port 8080 --root site
//
// Unlike 14-server, it has no limits for head, body and connections (only one, for a client that is
// silent or stuck), no counters, no log, and no drain (at a stop it answers requests that have
// come, but does not say that an answer is the last). A client costs a thread.
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

#include "announce.hpp"
#include "listen.hpp"
#include "peer_dialog.hpp"
#include "peer_options.hpp"
#include "peer_site.hpp"
#include "peer_thread_each.hpp"
#include "program_main.hpp"
#include "unique_fd.hpp"

namespace {

using uring::http::peer_dialog;
using uring::http::peer_options;
using uring::http::peer_site;

void set_limit(int socket, int which, std::chrono::milliseconds limit) {
  const ::timeval time{.tv_sec = limit.count() / 1000, .tv_usec = limit.count() % 1000 * 1000};
  (void)::setsockopt(socket, SOL_SOCKET, which, &time, sizeof time);
}

// Returns how many bytes have come; 0 if the client has ended, is lost, or was silent too long.
std::size_t receive(int socket, std::array<char, uring::http::peer_piece_bytes>& into) {
  for (;;) {
    const ::ssize_t count = ::recv(socket, into.data(), into.size(), 0);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) return 0;
  }
}

// Reads until the client has ended its side: with bytes unread, close() would send a reset.
void leave(int socket, std::array<char, uring::http::peer_piece_bytes>& room) {
  ::shutdown(socket, SHUT_WR);
  set_limit(socket, SO_RCVTIMEO, uring::http::peer_goodbye_ms);
  const auto until = uring::http::peer_clock::now() + uring::http::peer_goodbye_ms;
  std::size_t left = uring::http::peer_goodbye_bytes_max;
  while (left > 0 && uring::http::peer_clock::now() < until) {
    const std::size_t count = receive(socket, room);
    if (count == 0) return;
    left -= std::min(left, count);
  }
}

// --8<-- [start:converse]
// Serves a client, from the first byte to the last, on a thread that may sleep.
void converse(peer_site& site, int socket) {
  peer_dialog dialog{site};
  std::array<char, uring::http::peer_piece_bytes> piece;
  for (;;) {
    switch (dialog.next()) {
      case peer_dialog::wants::to_receive: {
        const std::size_t count = receive(socket, piece);
        if (count == 0) return;
        dialog.take({piece.data(), count});
        break;
      }
      case peer_dialog::wants::to_send: {
        const std::string_view text = dialog.unsent();
        const ::ssize_t count = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
        if (count == -1 && errno == EINTR) break;
        if (count == -1) return uring::http::close_will_reset(socket);
        dialog.sent(static_cast<std::size_t>(count));
        break;
      }
      case peer_dialog::wants::to_leave:
        return leave(socket, piece);
      case peer_dialog::wants::to_break:
        return uring::http::close_will_reset(socket);
    }
  }
}
// --8<-- [end:converse]

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 14, a peer: the same answers, with a thread for each client."};
  const uring::http::peer_command_line peer{flags};
  return common::server_main(
      argc, argv, flags, {.threads_max = 1},
      [&](const common::server_flags& server, const common::stop_signal& stop) {
        common::unique_fd listener =
            common::listen_on(server.host, server.port, {.accepts = common::blocking::no});
        const int listening = listener.get();
        const peer_options options = peer.options();
        peer_site site{options.root};
        uring::http::thread_each clients{std::move(listener), stop.fd(), [&](int socket) {
                                           set_limit(socket, SO_RCVTIMEO, options.patience_ms);
                                           set_limit(socket, SO_SNDTIMEO, options.patience_ms);
                                           converse(site, socket);
                                         }};
        common::announce(listening);
        clients.run();
      });
}
