// SPDX-License-Identifier: MIT
// 03-client: coroutine clients, any number of them on one thread.
//
//   ./course run 03:client -- --port 9000 --requests 100000 --size 1024
//   ./course run 03:client -- --port 9000 --clients 100 --requests 1000
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <exception>
#include <iostream>
#include <string>

#include "coroutine_client.hpp"
#include "program_main.hpp"

int main(int argc, char** argv) {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::int64_t clients = 1;
  std::int64_t requests = 100'000;
  std::int64_t message_bytes = 1024;
  common::flag_set flags{"Chapter 03: clients as coroutines, all of them on one thread."};
  flags.add("--host", host, "Address of the server");
  flags.add("--port", port, "Port of the server, from its first line");
  flags.add("--clients", clients, 1, 10'000, "Clients that talk at the same time");
  flags.add("--requests", requests, 1, 1'000'000'000, "Messages of each client");
  flags.add("--size", message_bytes, 1, 64 * 1024, "Bytes in a message");

  return common::program_main(argc, argv, flags, [&] {
    asio::io_context io{1};
    std::int64_t echoes = 0;
    const auto count = [&echoes](const std::exception_ptr& escaped, std::int64_t done) {
      if (escaped) std::rethrow_exception(escaped);
      echoes += done;
    };
    const completion::conversation plan{.server = {asio::ip::make_address(host), port},
                                        .requests = requests,
                                        .message_bytes = static_cast<std::size_t>(message_bytes)};
    for (std::int64_t i = 0; i < clients; ++i)
      asio::co_spawn(io, completion::converse(plan), count);
    io.run();
    std::cout << echoes << " echoes of " << message_bytes << " bytes\n";
  });
}
