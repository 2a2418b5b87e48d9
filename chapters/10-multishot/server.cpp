// SPDX-License-Identifier: MIT
// 10-server: the echo server with one accept for all clients, and one recv for each of them.
//
//   ./course run 10 -- --port 9000
#include <utility>

#include "announce.hpp"
#include "buffer_command_line.hpp"
#include "buffer_ring.hpp"
#include "io_context.hpp"
#include "listen.hpp"
#include "program_main.hpp"
#include "ring_options.hpp"
#include "stream_server.hpp"

namespace {

// Fewer buffers than in chapter 09: with the ring flags `default`, one client's burst may fill all
// of them before we reap.
constexpr uring::buffer_options pool{.count = 256};

// The queue has room for all that may complete before we reap: for each buffer, its recv or the
// send of its echo; for each client, its accept or its end. With `defer`, requests that must wait
// complete only when the program fetches completions, and not all in one fetch.
constexpr uring::ring_options queues{.mode = uring::ring_mode::defer, .cq_entries = 16'384};

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 10: an echo server of multishot requests."};
  const uring::ring_command_line ring{flags, queues};
  const uring::buffer_command_line buffers{flags, pool};
  return common::server_main(
      argc, argv, flags, {.threads_max = 1},
      [&](const common::server_flags& server, const common::stop_signal& stop) {
        common::unique_fd listener = common::listen_on(server.host, server.port);
        uring::io_context context{ring.options()};
        uring::buffer_ring supply{context, 0, buffers.options().count};
        uring::buffer_pool shared{context, supply, buffers.options()};
        common::announce(listener.get());
        context.run(uring::serve_from_streams(context, std::move(listener), stop.fd(), shared));
      });
}
