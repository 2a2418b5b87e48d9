// SPDX-License-Identifier: MIT
// 11-link_cp: copies a file, by chains of linked reads and writes.
//
//   ./course run 11:link_cp -- SOURCE TARGET
#include <poll.h>
#include <signal.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "cancel_source.hpp"
#include "copy_file.hpp"
#include "idle_echo.hpp"
#include "io_context.hpp"
#include "operations.hpp"
#include "program_main.hpp"
#include "ring_options.hpp"
#include "stop_signal.hpp"
#include "task.hpp"
#include "when_any.hpp"

namespace {

using uring::cancel_source;
using uring::io_context;
using uring::task;

task<> until_stopped(cancel_source& over, int stop_fd) {
  (void)co_await uring::poll_op(over, stop_fd, POLLIN);
}

// Ends when the copy ends, or when a stop is asked for. After a stop the target is as it was.
task<> copy_unless_stopped(io_context& context, const common::stop_signal& stop, std::string from,
                           std::string to, uring::copy_options options) {
  cancel_source over{context};
  task<> copy = uring::copy_file(context, over, std::move(from), to, options);
  task<> order = until_stopped(over, stop.fd());
  const auto first = co_await uring::when_any(over, std::move(copy), std::move(order));
  if (first.index != 0) throw std::runtime_error{"stopped: " + to + " is as it was before"};
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 11: copies a regular file. The target is replaced as a whole."};
  std::string from;
  std::string to;
  flags.add_argument("SOURCE", from, "The file to copy");
  flags.add_argument("TARGET", to, "The copy's name; not a folder");
  uring::copy_options options;
  auto block_bytes = static_cast<std::int64_t>(options.block_bytes);
  auto blocks = static_cast<std::int64_t>(options.blocks_per_chain);
  auto chains = static_cast<std::int64_t>(options.chains);
  flags.add("--block", block_bytes, 1, 1 << 20, "Bytes of a block, and of a registered buffer");
  flags.add("--blocks-per-chain", blocks, 1, 1 << 14, "At most; it has to fit into the queue");
  flags.add("--chains", chains, 1, 256, "How many at a time, each with a buffer");
  const uring::ring_command_line ring{flags};
  return common::program_main(argc, argv, flags, [&] {
    ::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error to report: EFBIG
    options = {.block_bytes = static_cast<std::size_t>(block_bytes),
               .blocks_per_chain = static_cast<std::size_t>(blocks),
               .chains = static_cast<std::size_t>(chains)};
    const common::stop_signal stop;
    io_context context{uring::with_room_for_pairs(ring.options())};
    context.run(copy_unless_stopped(context, stop, from, to, options));
  });
}
