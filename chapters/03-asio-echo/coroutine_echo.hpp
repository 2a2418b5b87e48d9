// SPDX-License-Identifier: MIT
// A session as a coroutine: the operations of callback_session, in the order in which they happen.
// Owns     the coroutine's frame owns the socket and the buffer; asio owns the frame.
// Lifetime `sockets` is a reference: the object behind it must outlive the coroutine.
// Threads  any that run the io_context; a coroutine runs on one of them at a time.
// Errors   an error ends its session, and no other. Errors are values here: nothing throws.
#pragma once

#include <array>
#include <asio/awaitable.hpp>
#include <asio/buffer.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <cstddef>
#include <system_error>

#include "open_sockets.hpp"
#include "todo.hpp"

namespace completion {

using asio::ip::tcp;

// Echoes until EOF or any other error. The operations are those of callback_session. Its members
// are local variables here, and its two functions become one loop. co_await each operation with the
// token `or_error`. co_await gives the number of bytes. A failed operation throws nothing, but
// stores its error in `error`. Then co_return without closing the socket. The socket's destructor
// closes it, after `entry` is destroyed.
inline asio::awaitable<void> echo(tcp::socket socket, open_sockets& sockets) {
  const open_sockets::entry entry{sockets, socket.native_handle()};
  std::array<std::byte, 16 * 1024> buffer;
  std::error_code error;
  auto or_error = asio::redirect_error(asio::use_awaitable, error);
  COURSE_TODO("03.2");
}

}  // namespace completion
