// SPDX-License-Identifier: MIT
// 14-peer-ring: chapter 14's answers from chapter 05's loop: a ring, a table of clients, a state
// machine, and no coroutine.
//
//   ./course run 14:peer-ring -- --port 8080 --root site
//
// Unlike 14-server, it has one thread, a buffer for each client, no limits for head, body and
// connections (only one, for a client that is silent or stuck, with a check of every client each
// second), no counters, no log, and no drain. It waits for the disk.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "announce.hpp"
#include "errors.hpp"
#include "listen.hpp"
#include "peer_options.hpp"
#include "peer_ring_clients.hpp"
#include "program_main.hpp"
#include "requests.hpp"
#include "ring.hpp"
#include "ring_options.hpp"
#include "slot_table.hpp"
#include "stop_signal.hpp"
#include "unique_fd.hpp"

namespace {

using namespace uring;
using uring::http::peer_clock;

constexpr ring_options queues{.mode = ring_mode::defer, .cq_entries = 16'384};
constexpr std::chrono::milliseconds sweep_ms{1000};

class ring_server {
 public:
  ring_server(common::unique_fd listener, const common::stop_signal& stop,
              const ring_options& options, const http::peer_options& chosen)
      : listener_{std::move(listener)}, clients_{ring_, chosen}, ring_{options} {
    request_stop_poll(ring_, stop.fd());
    arm_accept();
  }

  void run() {
    while (!done()) {
      (void)ring_.submit_and_wait(wait_at_most());  // whatever ended the wait: check all
      now_ = peer_clock::now();
      clients_.set_now(now_);
      for (const completion& each : ring_.reap()) handle(each);
      if (wake_at_ && now_ >= *wake_at_) on_wake_up();
      if (now_ < sweep_at_) continue;
      sweep_at_ = now_ + sweep_ms;
      clients_.sweep();
    }
  }

 private:
  void handle(const completion& done) {
    const tag from = unpack(done.user_data);
    switch (from.what) {
      case operation::accept:
        return on_accept(done.res);
      case operation::recv:
      case operation::send:
        return clients_.on_client(from, done.res);
      case operation::stop_poll:
        return begin_stop();
      case operation::cancel:
        return;
    }
  }

  void on_accept(std::int32_t res) {
    is_accepting_ = false;
    common::unique_fd client{res};  // a negative number closes nothing
    if (is_stopping()) return;
    if (client.valid()) {
      if (clients_.empty()) sweep_at_ = now_ + sweep_ms;
      clients_.add(std::move(client));
      return arm_accept();
    }
    switch (common::classify_accept_errno(-res)) {
      case common::accept_failure::try_again:
      case common::accept_failure::nothing_waiting:
        return arm_accept();
      case common::accept_failure::out_of_descriptors:
        wake_at_ = now_ + http::peer_accept_retry_ms;
        return;
      case common::accept_failure::listener_broken:
        common::throw_error(res, "accept");
    }
  }

  void arm_accept() {
    request_accept(ring_, listener_.get());
    is_accepting_ = true;
  }

  // As in chapter 05: answers what has come, then shuts the sockets down, then abandons them.
  void begin_stop() {
    stop_ = stop_phase::draining;
    wake_at_ = now_ + http::peer_stop_grace_ms;
    if (is_accepting_) cancel_accept(ring_);
    listener_.reset();
    clients_.end_reading();
  }

  void on_wake_up() {
    wake_at_.reset();
    if (!is_stopping()) return arm_accept();
    // Abandoned: the ring's destructor cancels what is left.
    stop_ = stop_ == stop_phase::ending ? stop_phase::abandoned : stop_phase::ending;
    wake_at_ = now_ + http::peer_stop_grace_ms;
    clients_.give_up_all();
  }

  [[nodiscard]] bool is_stopping() const noexcept { return stop_ != stop_phase::none; }
  [[nodiscard]] bool done() const noexcept {
    return stop_ == stop_phase::abandoned || (is_stopping() && clients_.empty() && !is_accepting_);
  }

  // Without clients there is nothing to sweep, and only wake_at_ limits the wait.
  [[nodiscard]] std::optional<std::chrono::milliseconds> wait_at_most() const {
    if (clients_.empty() && !wake_at_) return std::nullopt;
    const auto next =
        clients_.empty() ? *wake_at_ : std::min(sweep_at_, wake_at_.value_or(sweep_at_));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - peer_clock::now());
    return std::max(left, std::chrono::milliseconds{0});
  }

  enum class stop_phase { none, draining, ending, abandoned };

  common::unique_fd listener_;
  http::peer_ring_clients clients_;
  ring ring_;  // destroyed before clients_, whose memory the kernel may write to
  bool is_accepting_ = false;
  peer_clock::time_point now_ = peer_clock::now();  // of this turn
  peer_clock::time_point sweep_at_;                 // while there are clients
  std::optional<peer_clock::time_point> wake_at_;   // to accept again, or to go on with the stop
  stop_phase stop_ = stop_phase::none;
};

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 14, a peer: the same answers from a ring, without coroutines."};
  const ring_command_line ring{flags, queues};
  const uring::http::peer_command_line peer{flags};
  return common::server_main(
      argc, argv, flags, {.threads_max = 1},
      [&](const common::server_flags& server, const common::stop_signal& stop) {
        common::unique_fd listener = common::listen_on(server.host, server.port);
        const int listening = listener.get();
        ring_server all{std::move(listener), stop, ring.options(), peer.options()};
        common::announce(listening);
        all.run();
      });
}
