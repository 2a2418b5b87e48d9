// SPDX-License-Identifier: MIT
// A worker is what one thread of a server needs for itself: a ring with its context. A function
// below makes a listener for each worker.
// Owns     the context.
// Lifetime a worker must outlive all threads, not only its own, because any thread may send
//          messages to its ring.
// Threads  another thread may make and destroy it. Everything from enable() to the end of the last
//          task happens on one thread: the worker's own.
// Errors   std::system_error if the kernel refuses the ring, a listener or enable().
// Rule     a disabled ring belongs to no thread yet. With ring_mode::defer, it will belong to the
//          thread that calls enable().
// See      io_uring_setup(2), IORING_SETUP_R_DISABLED; socket(7), SO_REUSEPORT
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "addressed.hpp"
#include "errors.hpp"
#include "io_context.hpp"
#include "listen.hpp"
#include "ring_options.hpp"
#include "todo.hpp"
#include "unique_fd.hpp"

namespace uring {

class worker {
 public:
  // Makes the ring, disabled: nothing can be submitted to it yet, and no message sent.
  explicit worker(ring_options options) : context_{disabled(options)} {
    context_.set_receiver(&the_postman);
  }
  worker(worker&&) = delete;  // messages are sent to its ring

  // Enables the ring. From then on, the ring belongs to the calling thread. Call
  // io_uring_register(fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0), where fd is an unsigned: the
  // ring_fd of context_.handle(). It returns 0 or -errno. If it returns -errno, call
  // common::throw_error(result, "io_uring_register"), which throws. (liburing also has
  // io_uring_enable_rings(), but before version 2.4 its shared library lacks this function.)
  void enable() {
    COURSE_TODO("12.1");
  }

  // Only for the worker's own thread.
  [[nodiscard]] io_context& context() noexcept { return context_; }

  // Call it on the worker's own thread after the last task has ended. It waits for requests without
  // a task, such as a cancel. With `defer`, no other thread may enter the ring to wait for them,
  // not even the thread that destroys the ring (EEXIST).
  void finish() {
    while (context_.in_flight() > 0) context_.turn();
  }

 private:
  static ring_options disabled(ring_options options) noexcept {
    options.is_disabled = true;
    return options;
  }

  io_context context_;
};

// Returns `count` listeners on one port. The kernel will give each client to one of them. Make each
// listener with common::listen_on(host, port, {.shared = …}). If `port` is 0, the kernel chooses a
// port for the first listener, and common::port_of(its descriptor) returns the port that the others
// need. Decide which common::reuse_port (see listen.hpp) the first listener has, and which the
// others have. Even if `count` is 1, a second copy of the program must fail at its own first
// listener. Otherwise the second copy would take half of the clients.
inline std::vector<common::unique_fd> listen_for_each(std::size_t count, const std::string& host,
                                                      std::uint16_t port) {
  std::vector<common::unique_fd> listeners;
  COURSE_TODO("12.1");
  return listeners;
}

}  // namespace uring
