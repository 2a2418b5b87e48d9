// SPDX-License-Identifier: MIT
// A session in callbacks: asio calls an operation's handler when the operation has completed.
// Owns     its socket and its buffer. The handler of the operation in flight owns the session,
//          through the only shared_ptr. When no operation is in flight, the session is destroyed.
// Lifetime the open_sockets must outlive every session.
// Threads  any that run the io_context. One operation is in flight, so one handler runs at a time.
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

  // Initiates a receive into asio::buffer(buffer_), with socket_.async_read_some(), and returns
  // immediately. The handler captures shared_from_this(), which keeps this session alive. If bytes
  // came, the handler calls send() with their number. At EOF and on any other error, the handler
  // initiates nothing, so the session ends. The handler does not close socket_. The session's
  // destructor closes it, after entry_ is gone.
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
  // Sends all of asio::buffer(buffer_, bytes), the first `bytes` of the buffer, with
  // asio::async_write(). The handler calls receive(), unless there was an error. Decide what the
  // handler must capture.
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
