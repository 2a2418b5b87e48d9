// SPDX-License-Identifier: MIT
// 09-legacy: like 09-server, but each buffer is given to the kernel by a request of its own.
//
//   ./course run 09:legacy -- --port 9000 --buffers 256 --buffer-size 4096
#include <utility>

#include "announce.hpp"
#include "buffer_command_line.hpp"
#include "io_context.hpp"
#include "listen.hpp"
#include "pool_server.hpp"
#include "program_main.hpp"
#include "provided_buffers.hpp"
#include "ring_options.hpp"

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 09: an echo server with buffers provided by requests."};
  const uring::ring_command_line ring{flags};
  const uring::buffer_command_line buffers{flags};
  return common::server_main(
      argc, argv, flags, {.threads_max = 1},
      [&](const common::server_flags& server, const common::stop_signal& stop) {
        common::unique_fd listener = common::listen_on(server.host, server.port);
        uring::io_context context{ring.options()};
        uring::provided_buffers supply{context, 0};
        uring::buffer_pool pool{context, supply, buffers.options()};
        common::announce(listener.get());
        context.run(uring::serve_from_pool(context, std::move(listener), stop.fd(), pool));
      });
}
