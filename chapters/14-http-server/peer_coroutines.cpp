// SPDX-License-Identifier: MIT
// 14-peer-coroutines: the same as peer_callbacks.cpp, with the steps in the order in which they
// happen.
//
//   ./course run 14:peer-coroutines -- --port 8080 --root site
//
// Unlike 14-server, it has one thread, no limits for head, body and connections (only one, for a
// client that is silent or stuck), no counters, no log, and no drain (at a stop it answers requests
// that have come, but does not say that an answer is the last). It waits for the disk.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <asio/awaitable.hpp>
#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <cstddef>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>

#include "announce.hpp"
#include "listen.hpp"
#include "peer_accepting.hpp"
#include "peer_dialog.hpp"
#include "peer_options.hpp"
#include "peer_site.hpp"
#include "program_main.hpp"

namespace {

using asio::awaitable;
using asio::use_awaitable;
using asio::ip::tcp;
using uring::http::peer_clock;
using uring::http::peer_dialog;
using uring::http::peer_options;

using namespace asio::experimental::awaitable_operators;  // a || b waits until one has succeeded

// How long a wait may take, and when the present one began.
struct wait_limit {
  void begin() { since = peer_clock::now(); }
  [[nodiscard]] peer_clock::time_point end() const { return since + patience; }

  peer_clock::duration patience;
  peer_clock::time_point since = peer_clock::now();
};

// Ends when a wait has taken too long. The timer is not set anew for each operation: when it
// expires, we check how long the present wait has taken.
awaitable<void> watch(tcp::socket& socket, wait_limit& limit) {
  asio::steady_timer timer{socket.get_executor()};
  while (peer_clock::now() < limit.end()) {
    timer.expires_at(limit.end());
    co_await timer.async_wait(use_awaitable);
  }
}

// Our side has ended. Reads until the client has ended its side, because close() with unread bytes
// would send a reset, which overtakes the answer.
awaitable<void> read_to_the_end(tcp::socket& socket) {
  std::array<char, 4096> piece;
  std::error_code error;
  auto or_error = asio::redirect_error(use_awaitable, error);
  for (std::size_t left = uring::http::peer_goodbye_bytes_max; left > 0 && !error;) {
    const std::size_t bytes = co_await socket.async_read_some(asio::buffer(piece), or_error);
    left -= std::min(left, bytes);
  }
}

awaitable<void> leave(tcp::socket& socket) {
  socket.shutdown(tcp::socket::shutdown_send);
  wait_limit all{.patience = uring::http::peer_goodbye_ms};
  co_await (read_to_the_end(socket) || watch(socket, all));
}

awaitable<void> talk(tcp::socket& socket, peer_dialog& dialog, wait_limit& limit) {
  std::array<char, uring::http::peer_piece_bytes> piece;
  for (;;) {
    limit.begin();
    switch (dialog.next()) {
      case peer_dialog::wants::to_receive: {
        const std::size_t bytes =
            co_await socket.async_read_some(asio::buffer(piece), use_awaitable);
        dialog.take({piece.data(), bytes});
        break;
      }
      case peer_dialog::wants::to_send: {
        const std::string_view text = dialog.unsent();
        const std::size_t bytes =
            co_await socket.async_write_some(asio::buffer(text.data(), text.size()), use_awaitable);
        dialog.sent(bytes);
        break;
      }
      case peer_dialog::wants::to_leave:
        co_await leave(socket);
        co_return;
      case peer_dialog::wants::to_break:
        uring::http::close_will_reset(socket.native_handle());
        co_return;
    }
  }
}

// Every error comes here: the client has ended its stream, is lost, or was too slow.
awaitable<void> converse(tcp::socket& socket, peer_dialog& dialog, wait_limit& limit) {
  try {
    co_await talk(socket, dialog, limit);
  } catch (const std::system_error&) {
    if (!dialog.unsent().empty()) uring::http::close_will_reset(socket.native_handle());
  }
}

// Serves a client, from the first byte to the last. All of its state is in this frame.
awaitable<void> serve(tcp::socket socket, uring::http::peer_site& site, peer_options options,
                      uring::http::peer_sockets& all) {
  const uring::http::peer_sockets::entry entry{all, socket.native_handle()};
  peer_dialog dialog{site};
  wait_limit limit{.patience = options.patience_ms};
  co_await (converse(socket, dialog, limit) || watch(socket, limit));
}

void report(const std::exception_ptr& escaped) {
  if (escaped) std::rethrow_exception(escaped);  // peer_acceptor's loop writes it to the log
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 14, a peer: the same answers over asio, in coroutines."};
  const uring::http::peer_command_line peer{flags};
  return common::server_main(
      argc, argv, flags, {.threads_max = 1},
      [&](const common::server_flags& server, const common::stop_signal& stop) {
        const peer_options options = peer.options();
        uring::http::peer_site site{options.root};
        common::unique_fd listener = common::listen_on(server.host, server.port);
        const int listening = listener.get();
        uring::http::peer_sockets clients;
        asio::io_context io{1};
        uring::http::peer_acceptor acceptor{
            io, std::move(listener), stop.fd(), clients, [&](tcp::socket client) {
              asio::co_spawn(io, serve(std::move(client), site, options, clients), report);
            }};
        common::announce(listening);
        acceptor.run();
      });
}
