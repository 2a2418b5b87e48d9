// SPDX-License-Identifier: MIT
// 12-server: chapter 10's echo server on several threads, each with a ring of its own.
//
//   ./course run 12 -- --port 9000 --threads 2
#include <cstddef>
#include <cstdio>

#include "announce.hpp"
#include "buffer_command_line.hpp"
#include "echo_workers.hpp"
#include "program_main.hpp"
#include "ring_options.hpp"

namespace {

// As in chapter 10, for each worker.
constexpr uring::buffer_options pool{.count = 256};
constexpr uring::ring_options queues{.mode = uring::ring_mode::defer, .cq_entries = 16'384};

void report(const uring::echo_workers& all) {
  for (std::size_t i = 0; i < all.served().size(); ++i) {
    const std::size_t clients = all.served()[i];
    std::printf("worker %zu: %zu %s\n", i + 1, clients, clients == 1 ? "client" : "clients");
  }
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 12: an echo server with a ring for each thread."};
  const uring::ring_command_line ring{flags, queues};
  const uring::buffer_command_line buffers{flags, pool};
  bool hand_over = false;
  bool counts = false;
  flags.add("--hand-over", hand_over, "One worker accepts for all of them, and deals in turns");
  flags.add("--report", counts, "At the end, print how many clients each worker has had");
  return common::server_main(
      argc, argv, flags, {.threads_max = 64},
      [&](const common::server_flags& server, const common::stop_signal& stop) {
        uring::echo_workers all{{.threads = static_cast<std::size_t>(server.threads),
                                 .hand_over = hand_over,
                                 .ring = ring.options(),
                                 .buffers = buffers.options()},
                                server.host,
                                server.port,
                                stop};
        all.run(common::announce);
        if (counts) report(all);
      });
}
