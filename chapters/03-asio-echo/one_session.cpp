// SPDX-License-Identifier: MIT
// 03-one_session: serves one client with one session, without threads and without a stop.
//
//   ./course run 03:one_session -- --port 9000 --callbacks
//
// The program ends with its session, because io_context::run returns when no operation is left.
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "announce.hpp"
#include "callback_echo.hpp"
#include "coroutine_echo.hpp"
#include "listen.hpp"
#include "open_sockets.hpp"
#include "program_main.hpp"

namespace {

void serve_one(const std::string& host, std::uint16_t port, bool callbacks) {
  common::unique_fd listener = common::listen_on(host, port);
  common::announce(listener.get());
  completion::open_sockets sockets;
  asio::io_context io{1};
  asio::ip::tcp::acceptor acceptor{io, asio::ip::tcp::v4(), listener.release()};
  asio::ip::tcp::socket client = acceptor.accept();
  if (callbacks) {
    std::make_shared<completion::callback_session>(std::move(client), sockets)->receive();
  } else {
    asio::co_spawn(io, completion::echo(std::move(client), sockets),
                   [](const std::exception_ptr& escaped) {
                     if (escaped) std::rethrow_exception(escaped);
                   });
  }
  io.run();
  std::cout << "the session has ended, and run() has returned\n";
}

}  // namespace

int main(int argc, char** argv) {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  bool callbacks = false;
  common::flag_set flags{"Chapter 03: one session with one client, in callbacks or a coroutine."};
  flags.add("--host", host, "Address to listen on");
  flags.add("--port", port, "Port to listen on; 0 takes a free one");
  flags.add("--callbacks", callbacks, "The session in callbacks instead of a coroutine");
  return common::program_main(argc, argv, flags, [&] { serve_one(host, port, callbacks); });
}
