// SPDX-License-Identifier: MIT
// 05-server: one thread serves all clients, with one system call for all that has happened.
//
//   ./course run 05 -- --port 9000 --ring-flags defer
#include <utility>

#include "announce.hpp"
#include "listen.hpp"
#include "program_main.hpp"
#include "ring_echo.hpp"

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 05: an echo server on a submission and a completion queue."};
  const uring::ring_command_line ring{flags};
  return common::server_main(
      argc, argv, flags, {.threads_max = 1},
      [&ring](const common::server_flags& server, const common::stop_signal& stop) {
        common::unique_fd listener = common::listen_on(server.host, server.port);
        const int listening = listener.get();
        uring::ring_echo loop{std::move(listener), stop, ring.options()};
        common::announce(listening);
        loop.run();
      });
}
