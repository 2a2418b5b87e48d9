// SPDX-License-Identifier: MIT
// 08-server: each client has a task in a scope, and each wait has a deadline.
//
//   ./course run 08 -- --port 9000 --idle-timeout-ms 5000
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "announce.hpp"
#include "idle_echo.hpp"
#include "listen.hpp"
#include "program_main.hpp"
#include "ring_options.hpp"

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 08: an echo server that closes silent clients."};
  const uring::ring_command_line ring{flags};
  std::int64_t idle_timeout_ms = 60'000;
  flags.add("--idle-timeout-ms", idle_timeout_ms, 0, 86'400'000,
            "Close a client after so long without a byte either way; 0: never");
  return common::server_main(
      argc, argv, flags, {.threads_max = 1},
      [&](const common::server_flags& server, const common::stop_signal& stop) {
        std::optional<std::chrono::nanoseconds> idle_timeout;
        if (idle_timeout_ms > 0) idle_timeout = std::chrono::milliseconds{idle_timeout_ms};
        common::unique_fd listener = common::listen_on(server.host, server.port);
        const int listening = listener.get();
        uring::io_context context{uring::with_room_for_pairs(ring.options())};
        common::announce(listening);
        context.run(uring::serve_idle_echo(context, std::move(listener), stop.fd(), idle_timeout));
      });
}
