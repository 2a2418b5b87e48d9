// SPDX-License-Identifier: MIT
// 01-server: the blocking echo server, with a thread for each connection.
//
//   ./course run 01 -- --port 9000                    a thread each
//   ./course run 01 -- --port 9000 --one-at-a-time    the naive loop: client two waits
#include <thread>
#include <utility>

#include "announce.hpp"
#include "listener.hpp"
#include "program_main.hpp"
#include "sequential_server.hpp"
#include "thread_server.hpp"

namespace {

// The accepting thread blocks in accept(), so another thread waits for the stop signal.
template <typename Server>
void serve_until(const common::stop_signal& stop, common::unique_fd listener) {
  common::announce(listener.get());
  Server server{std::move(listener)};
  const std::jthread stopper{[&] {
    stop.wait();
    server.stop();
  }};
  try {
    server.run();
  } catch (...) {
    stop.request();  // otherwise ~jthread waits for the stopper, which waits for a signal
    throw;
  }
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 01: a blocking echo server, with a thread for each connection."};
  bool one_at_a_time = false;
  flags.add("--one-at-a-time", one_at_a_time, "Serve one client to its end, then the next");

  return common::server_main(
      argc, argv, flags, {.threads_max = 1},
      [&](const common::server_flags& server, const common::stop_signal& stop) {
        common::unique_fd listener = blocking::open_listener(server.host, server.port);
        if (one_at_a_time) {
          serve_until<blocking::sequential_server>(stop, std::move(listener));
        } else {
          serve_until<blocking::thread_server>(stop, std::move(listener));
        }
      });
}
