// SPDX-License-Identifier: MIT
// The result of an accept, and the class from which a service takes its clients.
// Owns     the client that was accepted, if there is one.
// Lifetime the source and the listener must outlive accept_each.
// Threads  the one that runs the queue.
// Errors   accepted::result says how the accept ended.
#pragma once

#include <liburing.h>
#include <sys/socket.h>

#include "cancel_source.hpp"
#include "io_request.hpp"
#include "task.hpp"
#include "unique_fd.hpp"

namespace uring {

struct [[nodiscard]] accepted {
  io_result result;
  common::unique_fd client;
};

// Each next() is one accept request. Chapter 10 has another class with these two functions.
class accept_each {
 public:
  accept_each(cancel_source& waiting, int listener) noexcept
      : waiting_{waiting}, listener_{listener} {}

  // const accepted got = co_await clients.next();
  auto next() noexcept { return io_request{waiting_, prepare{listener_}}; }
  task<> end() { co_return; }

 private:
  struct prepare {
    int listener;

    void operator()(::io_uring_sqe& sqe) const {
      ::io_uring_prep_accept(&sqe, listener, nullptr, nullptr, SOCK_CLOEXEC);
    }
    static accepted result(const completion& done) noexcept {
      return {.result = io_result{done.res}, .client = common::unique_fd{done.res}};
    }
  };

  cancel_source& waiting_;
  int listener_;
};

}  // namespace uring
