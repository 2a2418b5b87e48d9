// SPDX-License-Identifier: MIT
// 14-server: an HTTP/1.1 server for the files of a folder.
//
//   ./course run 14 -- --port 8080 --root site
#include <cstddef>

#include "announce.hpp"
#include "buffer_command_line.hpp"
#include "http_options.hpp"
#include "http_workers.hpp"
#include "program_main.hpp"
#include "ring_options.hpp"

namespace {

// For each worker. A buffer usually has room for the head of a browser's request.
constexpr uring::buffer_options pool{.count = 1024, .bytes = 4096};
constexpr uring::ring_options queues{.mode = uring::ring_mode::defer, .cq_entries = 16'384};

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 14: an HTTP/1.1 server for the files of a folder."};
  const uring::ring_command_line ring{flags, queues};
  const uring::buffer_command_line buffers{flags, pool};
  const uring::http::http_command_line http{flags};
  return common::server_main(
      argc, argv, flags, {.threads_max = 64},
      [&](const common::server_flags& server, const common::stop_signal& stop) {
        uring::http::http_workers all{{.threads = static_cast<std::size_t>(server.threads),
                                       .ring = ring.options(),
                                       .buffers = buffers.options(),
                                       .http = http.options(server.threads)},
                                      server.host,
                                      server.port,
                                      stop};
        all.run(common::announce);
      });
}
