// SPDX-License-Identifier: MIT
// 14-peer-callbacks: chapter 14's answers over asio, each step in a function of its own.
//
//   ./course run 14:peer-callbacks -- --port 8080 --root site
//
// Unlike 14-server, it has one thread, no limits for head, body and connections (only one, for a
// client that is silent or stuck), no counters, no log, and no drain (at a stop it answers requests
// that have come, but does not say that an answer is the last). It waits for the disk.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <cstddef>
#include <memory>
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

using asio::ip::tcp;
using uring::http::peer_clock;
using uring::http::peer_dialog;
using uring::http::peer_options;

// A client, kept alive by the handler of the one operation that is in flight. When a handler starts
// no other operation, the client is destroyed, and its socket is closed.
// --8<-- [start:members]
class session : public std::enable_shared_from_this<session> {
 public:
  session(tcp::socket socket, uring::http::peer_site& site, const peer_options& options,
          uring::http::peer_sockets& all)
      : socket_{std::move(socket)},
        timer_{socket_.get_executor()},
        entry_{all, socket_.native_handle()},
        dialog_{site},
        patience_{options.patience_ms} {}
  // --8<-- [end:members]

  void start() {
    watch();
    advance();
  }

 private:
  // --8<-- [start:advance]
  // Called whenever a step is done: starts the next step, and returns at once.
  void advance() {
    waits_since_ = peer_clock::now();
    switch (dialog_.next()) {
      case peer_dialog::wants::to_receive:
        return receive();
      case peer_dialog::wants::to_send:
        return send();
      case peer_dialog::wants::to_leave:
        return leave();
      case peer_dialog::wants::to_break:
        return uring::http::close_will_reset(socket_.native_handle());
    }
  }
  // --8<-- [end:advance]

  // --8<-- [start:receive]
  void receive() {
    socket_.async_read_some(
        asio::buffer(piece_),
        [self = shared_from_this()](const std::error_code& error, std::size_t bytes) {
          if (error) return;
          self->dialog_.take({self->piece_.data(), bytes});
          self->advance();
        });
  }
  // --8<-- [end:receive]

  // --8<-- [start:send]
  void send() {
    const std::string_view text = dialog_.unsent();
    socket_.async_write_some(
        asio::buffer(text.data(), text.size()),
        [self = shared_from_this()](const std::error_code& error, std::size_t bytes) {
          if (error) return;
          self->dialog_.sent(bytes);
          self->advance();
        });
  }
  // --8<-- [end:send]

  // --8<-- [start:leave]
  // Ends our side, and reads until the client has ended its side, because close() with unread bytes
  // would send a reset, which overtakes the answer.
  void leave() {
    std::error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    patience_ = uring::http::peer_goodbye_ms;
    watch();
    drop();
  }

  void drop() {
    socket_.async_read_some(
        asio::buffer(piece_),
        [self = shared_from_this()](const std::error_code& error, std::size_t bytes) {
          if (error) return;
          self->goodbye_left_ -= std::min(self->goodbye_left_, bytes);
          if (self->goodbye_left_ > 0) self->drop();
        });
  }
  // --8<-- [end:leave]

  // --8<-- [start:watch]
  // A client has one timer, which is not set anew for each operation. When it expires, the handler
  // checks how long this wait has taken. It has a weak_ptr, so that no timer keeps a client alive.
  void watch() {
    timer_.expires_at(waits_since_ + patience_);
    timer_.async_wait([weak = weak_from_this()](const std::error_code& canceled) {
      const auto self = weak.lock();
      if (canceled || self == nullptr) return;
      if (peer_clock::now() < self->waits_since_ + self->patience_) return self->watch();
      if (!self->dialog_.unsent().empty()) {
        uring::http::close_will_reset(self->socket_.native_handle());
      }
      std::error_code ignored;
      self->socket_.cancel(ignored);  // the operation in flight ends with an error
    });
  }
  // --8<-- [end:watch]

  tcp::socket socket_;
  asio::steady_timer timer_;
  uring::http::peer_sockets::entry entry_;  // after socket_: destroyed before it is closed
  peer_dialog dialog_;
  peer_clock::time_point waits_since_ = peer_clock::now();
  peer_clock::duration patience_;
  std::size_t goodbye_left_ = uring::http::peer_goodbye_bytes_max;
  std::array<char, uring::http::peer_piece_bytes> piece_;
};

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 14, a peer: the same answers over asio, in callbacks."};
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
              std::make_shared<session>(std::move(client), site, options, clients)->start();
            }};
        common::announce(listening);
        acceptor.run();
      });
}
