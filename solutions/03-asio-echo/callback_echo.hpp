// SPDX-License-Identifier: MIT
// A session in callbacks: each operation is given the function to call when it has completed.
// Owns     its socket and its buffer. The handler of the operation in flight owns the session, by
//          the only shared_ptr. So when no operation is in flight, the session is destroyed.
// Lifetime the open_sockets must outlive every session.
// Threads  any that run the io_context: with one operation in flight, one handler runs at a time.
// Errors   an error ends its session, and no other.
// See      asio's tcp::socket::async_read_some, async_write
#pragma once

#include <array>
#include <asio/buffer.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>
#include <cstddef>
#include <memory>
#include <system_error>
#include <utility>

#include "open_sockets.hpp"
#include "todo.hpp"

namespace completion {

using asio::ip::tcp;

// --8<-- [start:session]
class callback_session : public std::enable_shared_from_this<callback_session> {
 public:
  callback_session(tcp::socket socket, open_sockets& sockets)
      : socket_{std::move(socket)}, entry_{sockets, socket_.native_handle()} {}

  // Initiates a receive into asio::buffer(buffer_) and returns at once. When bytes have come, the
  // handler calls send(). At EOF and on any other error it initiates nothing, and so the session
  // ends. The handler does not close socket_: the session's destructor does, after entry_ is gone.
  // To keep this session alive, the handler captures shared_from_this().
  void receive() {
    // --8<-- [start:task-03-1]
    socket_.async_read_some(
        asio::buffer(buffer_),
        [self = shared_from_this()](const std::error_code& error, std::size_t received) {
          if (!error) self->send(received);
        });
    // --8<-- [end:task-03-1]
  }

 private:
  // Sends all of asio::buffer(buffer_, bytes), the first `bytes` of the buffer. The handler calls
  // receive() again, unless there was an error. This handler, too, keeps the session alive.
  void send(std::size_t bytes) {
    // --8<-- [start:task-03-1b]
    asio::async_write(socket_, asio::buffer(buffer_, bytes),
                      [self = shared_from_this()](const std::error_code& error, std::size_t) {
                        if (!error) self->receive();
                      });
    // --8<-- [end:task-03-1b]
  }

  tcp::socket socket_;
  open_sockets::entry entry_;  // after socket_: destroyed before the descriptor is closed
  std::array<std::byte, 16 * 1024> buffer_;
};
// --8<-- [end:session]

}  // namespace completion
