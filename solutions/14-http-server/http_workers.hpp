// SPDX-License-Identifier: MIT
// The whole server: chapter 12's workers, each with a service of its own. They share the port, the
// root's descriptor, the counters, and nothing that has to be locked.
// Owns     root, options, counters and workers.
// Lifetime the stop signal must outlive it. Call run() only once: it uses up the listeners.
// Threads  as workers.hpp says. Only a worker's own thread uses what its clients need.
// Errors   as workers::run(); std::system_error if there is no such root.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "buffer_pool.hpp"
#include "buffer_ring.hpp"
#include "counters.hpp"
#include "errors.hpp"
#include "file_requests.hpp"
#include "http_options.hpp"
#include "http_service.hpp"
#include "http_site.hpp"
#include "io_context.hpp"
#include "ring_options.hpp"
#include "ring_worker.hpp"
#include "site_root.hpp"
#include "stop_signal.hpp"
#include "unique_fd.hpp"
#include "workers.hpp"

namespace uring::http {

struct http_worker_options {
  std::size_t threads = 1;
  ring_options ring;
  buffer_options buffers;  // for each worker
  http_options http;
};

class http_workers {
 public:
  // Makes every ring and every listener: from here on clients may come, and wait.
  http_workers(http_worker_options options, const std::string& host, std::uint16_t port,
               const common::stop_signal& stop)
      : options_{std::move(options)},
        stop_{stop},
        root_{options_.http.root},
        counters_(options_.threads),
        all_{options_.threads, options_.ring, stop},
        listeners_{listen_for_each(options_.threads, host, port)} {
    for (const common::unique_fd& each : listeners_) send_at_once(each.get());
  }

  // Calls `announce` with a listener when all workers are ready, and serves until the stop.
  void run(const std::function<void(int listener)>& announce) {
    all_.run([&](worker& own, std::size_t index) {
      common::unique_fd listener = std::move(listeners_[index]);
      if (index == 0) announce(listener.get());
      serve(own, index, std::move(listener));
    });
  }

 private:
  // Without this, the end of an answer may wait until the client has acknowledged the answer's
  // beginning. Each client inherits the option from its listener.
  static void send_at_once(int listener) {
    const int on = 1;
    common::check(::setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on),
                  "setsockopt(TCP_NODELAY)");
  }

  // --8<-- [start:serve]
  // Serves clients on a worker's own thread until the stop, with objects that only it uses.
  void serve(worker& own, std::size_t index, common::unique_fd listener) {
    io_context& context = own.context();
    allow_kernel_threads(context);
    buffer_ring supply{context, 0, options_.buffers.count};
    buffer_pool pool{context, supply, options_.buffers};
    http_site site{root_, options_.http, pool, counters_, index};
    http_service service{context, std::move(listener), stop_.fd(), site};
    context.run(service.serve_until_stopped());
  }
  // --8<-- [end:serve]

  http_worker_options options_;
  const common::stop_signal& stop_;
  site_root root_;
  std::vector<counters> counters_;
  workers all_;
  std::vector<common::unique_fd> listeners_;
};

}  // namespace uring::http
