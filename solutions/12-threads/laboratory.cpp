// SPDX-License-Identifier: MIT
// 12-laboratory: an echo server on several rings, and a switch for each choice that costs time.
//
//   ./course run 12:laboratory -- --port 9000 --threads 2 --one-shot
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "announce.hpp"
#include "buffer_command_line.hpp"
#include "lab_switches.hpp"
#include "lab_worker.hpp"
#include "program_main.hpp"
#include "ring_options.hpp"
#include "ring_worker.hpp"

namespace {

constexpr uring::buffer_options pool{.count = 1024, .bytes = 4096};
constexpr uring::ring_options queues{.mode = uring::ring_mode::defer};

void report(const uring::lab_counts& counts) {
  const auto of = [](std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  std::printf("sends: %llu\n", static_cast<unsigned long long>(counts.sends));
  std::printf("entries into the kernel: %llu\n", static_cast<unsigned long long>(counts.enters));
  std::printf("completions a wait: %.2f\n", of(counts.completions, counts.waits));
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 12: what makes a server on rings slower. Not a server to keep."};
  const uring::ring_command_line ring{flags, queues};
  const uring::buffer_command_line buffers{flags, pool};
  uring::lab_switches switches;
  uring::add_lab_switches(flags, switches);
  return common::server_main(
      argc, argv, flags, {.threads_max = 64},
      [&](const common::server_flags& server, const common::stop_signal& stop) {
        auto listeners = uring::listen_for_each(static_cast<std::size_t>(server.threads),
                                                server.host, server.port);
        common::announce(listeners.front().get());
        std::vector<uring::lab_counts> counts(listeners.size());
        std::vector<std::jthread> threads;
        threads.reserve(listeners.size());
        for (std::size_t i = 0; i < listeners.size(); ++i) {
          threads.emplace_back([&, i] {
            uring::lab_worker own{switches, ring.options(), buffers.options(),
                                  std::move(listeners[i]), stop.fd()};
            counts[i] = own.run();
          });
        }
        threads.clear();  // joins them
        uring::lab_counts all;
        for (const uring::lab_counts& each : counts) all.add(each);
        report(all);
      });
}
