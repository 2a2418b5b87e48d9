// SPDX-License-Identifier: MIT
// 07-server: one thread serves all clients, and each client has a coroutine.
//
//   ./course run 07 -- --port 9000 --ring-flags defer
#include <utility>

#include "announce.hpp"
#include "echo_server.hpp"
#include "listen.hpp"
#include "program_main.hpp"

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 07: an echo server, a coroutine for each client."};
  const uring::ring_command_line ring{flags};
  return common::server_main(
      argc, argv, flags, {.threads_max = 1},
      [&ring](const common::server_flags& server, const common::stop_signal& stop) {
        common::unique_fd listener = common::listen_on(server.host, server.port);
        const int listening = listener.get();
        uring::echo_server loop{std::move(listener), stop, ring.options()};
        common::announce(listening);
        loop.run();
      });
}
