// SPDX-License-Identifier: MIT
// 11-send_file: sends a file to every client that connects, in one of three ways.
//
//   ./course run 11:send_file -- --port 9000 --by splice FILE
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "announce.hpp"
#include "copy_file.hpp"
#include "echo_service.hpp"
#include "file_sender.hpp"
#include "io_context.hpp"
#include "listen.hpp"
#include "program_main.hpp"
#include "registered_files.hpp"
#include "ring_options.hpp"
#include "task.hpp"

namespace {

uring::task<> serve_file(uring::io_context& context, common::unique_fd listener, int stop_fd,
                         const uring::served_file& file) {
  uring::echo_service<uring::file_sender> service{context, std::move(listener), stop_fd, file};
  co_await service.serve_until_stopped();
}

uring::send_method method_of(const std::string& name) {
  const auto& names = uring::send_method_names;
  return static_cast<uring::send_method>(std::ranges::find(names, name) - names.begin());
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 11: gives a file to every client."};
  std::string path;
  flags.add_argument("FILE", path, "The file");
  std::string by = uring::send_method_names.front();
  flags.add("--by", by, {uring::send_method_names.begin(), uring::send_method_names.end()},
            "How it gets from the file to the socket");
  std::int64_t piece_bytes = 256 * 1024;
  flags.add("--piece", piece_bytes, 4096, 1 << 20,
            "Bytes that go through a pipe or a block at once");
  const uring::ring_command_line ring{flags};
  return common::server_main(
      argc, argv, flags, {.threads_max = 1},
      [&](const common::server_flags& server, const common::stop_signal& stop) {
        const uring::copy_source source = uring::open_source(path);
        common::unique_fd listener = common::listen_on(server.host, server.port);
        uring::io_context context{ring.options()};
        uring::registered_files files{context, 1};
        const uring::file_slot slot = files.add(source.fd.get());
        const uring::served_file file{.fd = source.fd.get(),
                                      .ref = uring::file_of(slot, source.fd.get()),
                                      .method = method_of(by),
                                      .piece_bytes = static_cast<std::size_t>(piece_bytes)};
        common::announce(listener.get());
        context.run(serve_file(context, std::move(listener), stop.fd(), file));
      });
}
