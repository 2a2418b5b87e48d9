// SPDX-License-Identifier: MIT
// Chapter 10's echo server on several workers. Either the kernel gives each client to one of their
// listeners, or one worker accepts for all, and deals the clients out.
// Owns     the workers, and all that they share.
// Lifetime the stop signal must outlive it. Call run() only once: it uses up the listeners.
// Threads  as workers.hpp says. A worker's buffers and its clients belong to its own thread alone.
// Errors   as workers::run().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "buffer_pool.hpp"
#include "buffer_ring.hpp"
#include "counted_echo.hpp"
#include "dealing.hpp"
#include "dealt_clients.hpp"
#include "echo_service.hpp"
#include "io_context.hpp"
#include "listen.hpp"
#include "ring_options.hpp"
#include "ring_worker.hpp"
#include "scope_exit.hpp"
#include "stop_signal.hpp"
#include "stream_server.hpp"
#include "task.hpp"
#include "unique_fd.hpp"
#include "workers.hpp"

namespace uring {

struct echo_worker_options {
  std::size_t threads = 1;
  bool hand_over = false;  // one worker accepts for all
  ring_options ring;
  buffer_options buffers;  // for each worker
};

class echo_workers {
 public:
  // Makes every ring and every listener. From here on clients may come; they wait until run().
  echo_workers(const echo_worker_options& options, const std::string& host, std::uint16_t port,
               const common::stop_signal& stop)
      : options_{options},
        stop_{stop},
        all_{options.threads, options.ring, stop},
        listeners_{listen_for_each(options.hand_over ? 1 : options.threads, host, port)},
        served_(options.threads) {}

  // Calls `announce` with a listener when all workers are ready, and serves until the stop.
  void run(const std::function<void(int listener)>& announce) {
    if (options_.hand_over) return deal(announce);
    all_.run([&](worker& own, std::size_t index) {
      common::unique_fd listener = std::move(listeners_[index]);
      if (index == 0) announce(listener.get());
      serve<streamed_clients>(own, index, std::move(listener));
    });
  }

  // How many clients each worker has had. Call it after run().
  [[nodiscard]] const std::vector<std::size_t>& served() const noexcept { return served_; }

 private:
  void deal(const std::function<void(int listener)>& announce) {
    std::list<arrivals> others;
    for (std::size_t i = 1; i < all_.size(); ++i) others.emplace_back(all_.context_of(i));
    dealer deals{all_.context_of(0), others};
    all_.run([&](worker& own, std::size_t index) {
      if (index > 0) {
        arrivals& from = *std::next(others.begin(), static_cast<std::ptrdiff_t>(index - 1));
        return serve<dealt_clients>(own, index, dealt_listener{&from, &stop_});
      }
      const scope_exit last_word{[&deals] { deals.end(); }};
      announce(listeners_.front().get());
      serve<dealing_clients>(own, index, dealing_listener{std::move(listeners_.front()), &deals});
    });
  }

  // Serves clients on a worker's own thread until the stop, with buffers that only it uses.
  template <typename Clients, typename Listener>
  void serve(worker& own, std::size_t index, Listener listener) {
    io_context& context = own.context();
    buffer_ring supply{context, 0, options_.buffers.count};
    buffer_pool pool{context, supply, options_.buffers};
    std::size_t served = 0;
    const int stop = stop_.fd();
    context.run(serve_until_stopped<Clients>(context, std::move(listener), stop, served, pool));
    served_[index] = served;
  }

  template <typename Clients, typename Listener>
  static task<> serve_until_stopped(io_context& context, Listener listener, int stop_fd,
                                    std::size_t& served, buffer_pool& pool) {
    echo_service<counted_echo, Clients, Listener> service{context, std::move(listener), stop_fd,
                                                          served, pool};
    co_await service.serve_until_stopped();
  }

  echo_worker_options options_;
  const common::stop_signal& stop_;
  workers all_;
  std::vector<common::unique_fd> listeners_;
  std::vector<std::size_t> served_;
};

}  // namespace uring
