// SPDX-License-Identifier: MIT
// 11-variants: one echo server, with each of io_uring's ways to receive and to send.
//
//   ./course run 11:variants -- --port 9000 --kind linked
#include <liburing.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "announce.hpp"
#include "buffer_command_line.hpp"
#include "buffer_pool.hpp"
#include "idle_echo.hpp"
#include "io_context.hpp"
#include "listen.hpp"
#include "program_main.hpp"
#include "ring_options.hpp"
#include "variants.hpp"

namespace {

// As in chapter 10, because with a multishot RECV one client's burst may fill all of the buffers.
constexpr uring::buffer_options pool{.count = 256};

std::vector<std::string> names() {
  std::vector<std::string> all;
  all.reserve(uring::variants.size());
  for (const uring::variant& each : uring::variants) all.emplace_back(each.name);
  return all;
}

std::string summaries() {
  std::string text = "Chapter 11: an echo server of the kind that --kind names.\n";
  for (const uring::variant& each : uring::variants) {
    text += "\n  " + std::string{each.name};
    text.append(14 - each.name.size(), ' ');
    text += each.summary;
  }
  return text + '\n';
}

// Throws if the kernel lacks the operation, because then every connection would end with EINVAL.
void check_known(uring::io_context& context, const uring::variant& kind) {
  ::io_uring_probe* const probe = ::io_uring_get_probe_ring(&context.handle());
  const bool known = probe == nullptr || ::io_uring_opcode_supported(probe, kind.newest) != 0;
  ::io_uring_free_probe(probe);
  if (known) return;
  throw std::runtime_error{"--kind " + std::string{kind.name} +
                           ": this kernel's io_uring has no such operation (" +
                           std::string{kind.summary} + "); see ./course doctor"};
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{summaries()};
  const uring::ring_command_line ring{flags};
  const uring::buffer_command_line buffers{flags, pool};
  std::string name{uring::variants.front().name};
  flags.add("--kind", name, names(), "How it receives and sends");
  return common::server_main(
      argc, argv, flags, {.threads_max = 1},
      [&](const common::server_flags& server, const common::stop_signal& stop) {
        const auto* const kind = std::ranges::find(uring::variants, name, &uring::variant::name);
        common::unique_fd listener = common::listen_on(server.host, server.port);
        const int listening = listener.get();
        uring::io_context context{uring::with_room_for_pairs(ring.options())};
        check_known(context, *kind);
        common::announce(listening);
        context.run(kind->serve(context, std::move(listener), stop.fd(), buffers.options()));
      });
}
