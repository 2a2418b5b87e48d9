// SPDX-License-Identifier: MIT
// A client as a coroutine: chapter 01's blocking client with `co_await` in front of each wait.
// Owns     its socket and messages, in the frame.
// Lifetime parameters are values, so the frame keeps its own copies.
// Threads  any that run the io_context; a coroutine runs on one of them at a time.
// Errors   std::system_error from asio, std::runtime_error for an echo that differs; both leave the
//          coroutine, and co_spawn's handler gets them.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/buffer.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "todo.hpp"

namespace completion {

using asio::ip::tcp;

struct conversation {
  tcp::endpoint server;
  std::int64_t requests;
  std::size_t message_bytes;
};

// Consecutive messages differ, so that a late echo of the previous message is noticed.
inline void fill(std::vector<unsigned char>& message, std::int64_t request) {
  for (std::size_t i = 0; i < message.size(); ++i) {
    message[i] = static_cast<unsigned char>(static_cast<std::size_t>(request) * 31 + i);
  }
}

// co_await each operation with the token asio::use_awaitable. Then a failed operation throws
// std::system_error. Connect once, with socket.async_connect() to plan.server.
// (asio::async_connect() is for several endpoints.) Then for each request, fill() `message`, send
// it with asio::async_write(), and read exactly as many bytes into `reply` with asio::async_read().
// If `reply` differs from `message`, throw std::runtime_error. At the end, co_return how many
// echoes came.
inline asio::awaitable<std::int64_t> converse(conversation plan) {
  const auto executor = co_await asio::this_coro::executor;
  tcp::socket socket{executor};
  std::vector<unsigned char> message(plan.message_bytes);
  std::vector<unsigned char> reply(plan.message_bytes);
  // --8<-- [start:task-03-4]
  co_await socket.async_connect(plan.server, asio::use_awaitable);
  for (std::int64_t request = 0; request < plan.requests; ++request) {
    fill(message, request);
    co_await asio::async_write(socket, asio::buffer(message), asio::use_awaitable);
    co_await asio::async_read(socket, asio::buffer(reply), asio::use_awaitable);
    if (reply != message) {
      throw std::runtime_error{"echo " + std::to_string(request) + " differs from its message"};
    }
  }
  co_return plan.requests;
  // --8<-- [end:task-03-4]
}

}  // namespace completion
