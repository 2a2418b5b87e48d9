// SPDX-License-Identifier: MIT
// 03-server: the echo server over asio, in callbacks or coroutines, on one thread or several.
//
//   ./course run 03 -- --port 9000
//   ./course run 03 -- --port 9000 --callbacks --threads 2
#include <asio/io_context.hpp>
#include <asio/strand.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "accepting.hpp"
#include "announce.hpp"
#include "listen.hpp"
#include "open_sockets.hpp"
#include "program_main.hpp"
#include "running.hpp"

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 03: the echo server over asio, in callbacks or coroutines."};
  bool callbacks = false;
  flags.add("--callbacks", callbacks, "Sessions in callbacks instead of coroutines");
  common::server_flags server;
  common::add_server_flags(flags, server, {.threads_max = 64});

  // We do not use server_main here, because asio's signal_set takes the signals.
  return common::program_main(argc, argv, flags, [&] {
    common::unique_fd listener = common::listen_on(server.host, server.port);
    const int listening = listener.get();
    completion::open_sockets sockets;
    asio::io_context io{static_cast<int>(server.threads)};
    const auto control = asio::make_strand(io);
    const auto style = callbacks ? completion::style::callbacks : completion::style::coroutines;
    completion::acceptor_loop acceptor{io, control, std::move(listener), style, sockets};
    const completion::graceful_stop stop{control, acceptor, sockets};
    acceptor.accept();
    common::announce(listening);  // from here on a signal must cause a clean stop
    completion::run_on_threads(io, server.threads);
    acceptor.throw_if_broken();
  });
}
