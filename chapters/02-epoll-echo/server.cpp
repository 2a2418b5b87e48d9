// SPDX-License-Identifier: MIT
// 02-server: one thread serves every client that epoll reports as ready.
//
//   ./course run 02 -- --port 9000
#include <utility>

#include "announce.hpp"
#include "echo_loop.hpp"
#include "listen.hpp"
#include "program_main.hpp"

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 02: an echo server that waits for readiness with epoll."};
  return common::server_main(
      argc, argv, flags, {.threads_max = 1},
      [](const common::server_flags& server, const common::stop_signal& stop) {
        common::unique_fd listener =
            common::listen_on(server.host, server.port, {.accepts = common::blocking::no});
        const int listening = listener.get();
        epoll::echo_loop loop{std::move(listener), stop};
        common::announce(listening);
        loop.run();
      });
}
