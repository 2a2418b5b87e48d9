// SPDX-License-Identifier: MIT
// Classes from which an echo_service takes its clients if one worker deals the clients to all.
// Lifetime the dealer and the arrivals must outlive the service.
// Threads  the one that runs the service's context.
#pragma once

#include <utility>

#include "accepted.hpp"
#include "cancel_source.hpp"
#include "dealing.hpp"
#include "multishot_operations.hpp"
#include "stop_signal.hpp"
#include "task.hpp"
#include "unique_fd.hpp"

namespace uring {

// ---- for the worker that deals ----

struct dealing_listener {
  common::unique_fd socket;
  dealer* by;

  [[nodiscard]] const dealing_listener& get() const noexcept { return *this; }
  void reset() noexcept { socket.reset(); }
};

class dealing_clients {
 public:
  dealing_clients(cancel_source& waiting, const dealing_listener& from)
      : clients_{waiting, {from.socket.get()}}, dealer_{*from.by} {}

  // The next client that is not dealt to another worker.
  task<accepted> next() {
    for (;;) {
      accepted got = co_await clients_.next();
      if (!got.client.valid()) co_return got;
      const bool is_gone = co_await dealer_.deal(got.client);
      if (!is_gone) co_return got;
    }
  }
  task<> end() { return clients_.end(); }

 private:
  accept_stream clients_;
  dealer& dealer_;
};

// ---- for all others ----

struct dealt_listener {
  arrivals* from;
  const common::stop_signal* stop;

  [[nodiscard]] const dealt_listener& get() const noexcept { return *this; }
  void reset() noexcept {}
};

// Only the dealer's last message says how many clients come in all. So when a stop or a failure
// ends this worker, the worker requests a stop of all workers, and then waits for that message.
class dealt_clients final : cancel_target {
 public:
  dealt_clients(cancel_source& waiting, const dealt_listener& from)
      : from_{*from.from}, stop_{*from.stop} {
    from_.begin();
    waiting.watch(*this);
  }

  auto next() noexcept { return from_.next(); }

  // Closes the clients that still come.
  task<> end() {
    stop_.request();
    while (!from_.all_have_come()) {
      const accepted late = co_await from_.next();
    }
  }

 private:
  void ask_to_end() override { stop_.request(); }

  arrivals& from_;
  const common::stop_signal& stop_;
};

}  // namespace uring
