// SPDX-License-Identifier: MIT
// An echo service out of a pool of buffers, on a thread of its own, and what its pool looked like
// when it had ended.
// Owns     the listener, the thread, and in it the ring and the pool.
// Lifetime the destructor asks it to stop, and joins.
// Threads  the test's own; the service has one.
// Errors   std::system_error; an exception in the thread ends the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>

#include "buffer_pool.hpp"
#include "buffer_ring.hpp"
#include "io_context.hpp"
#include "ring_options.hpp"
#include "socket_pair.hpp"
#include "stop_signal.hpp"
#include "task.hpp"
#include "unique_fd.hpp"

namespace course_test {

using pool_server = uring::task<> (*)(uring::io_context& context, common::unique_fd listener,
                                      int stop_fd, uring::buffer_pool& pool);

class pool_service {
 public:
  pool_service(pool_server serve, const uring::ring_options& ring,
               const uring::buffer_options& buffers)
      : listener_{listen_on_any_port()},
        port_{listener_.port},
        thread_{[this, serve, ring, buffers] { run(serve, ring, buffers); }} {}
  pool_service(pool_service&&) = delete;
  ~pool_service() { stop_.request(); }  // then thread_ joins

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

  // Ends the service. Returns how many buffers were still lent then.
  [[nodiscard]] std::size_t lent_at_end() {
    stop_.request();
    thread_.join();
    return lent_;
  }

 private:
  void run(pool_server serve, const uring::ring_options& ring,
           const uring::buffer_options& buffers) {
    uring::io_context context{ring};
    uring::buffer_ring supply{context, 0, buffers.count};
    uring::buffer_pool pool{context, supply, buffers};
    context.run(serve(context, std::move(listener_.socket), stop_.fd(), pool));
    lent_ = pool.lent();
  }

  common::stop_signal stop_;
  tcp_listener listener_;
  std::uint16_t port_;
  std::size_t lent_ = 0;
  std::jthread thread_;
};

}  // namespace course_test
