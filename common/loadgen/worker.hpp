// SPDX-License-Identifier: MIT
// One thread's share of the clients: a closed loop over its connections.
// Owns     its connections, its epoll instance, one receive buffer, and its part of the result.
// Lifetime run() once; result() afterwards.
// Threads  the one that calls run().
// Errors   std::system_error if epoll fails; what a server does is counted, not thrown.
// Rule     an event costs at most one recv and one send: epoll is edge-triggered, and a call that
//          took less than it was offered has emptied, or filled, the socket. A call that took all
//          asks epoll to look again, so that one busy connection does not hold up the others.
// See      epoll(7)
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "endpoint.hpp"
#include "exchange.hpp"
#include "measurement.hpp"
#include "unique_fd.hpp"

namespace loadgen {

struct worker_setup {
  const endpoint& server;
  std::size_t first_connection;  // the number of slot 0 among the connections of all workers
  std::uint32_t inflight;
  std::int64_t stall_timeout_ns;
  int stop_fd;  // readable once the run shall end
};

// In nanoseconds of the steady clock. Requests are sent until `until_ns` or until `requests` of
// them were sent after `measure_from_ns`; both are without limit by default.
struct schedule {
  static constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

  std::int64_t measure_from_ns = 0;
  std::int64_t until_ns = std::numeric_limits<std::int64_t>::max();
  std::uint64_t requests = no_limit;

  [[nodiscard]] bool by_number() const noexcept { return requests != no_limit; }
};

class worker {
 public:
  worker(const worker_setup& setup, std::unique_ptr<exchange> talk,
         std::vector<common::unique_fd> sockets);
  worker(worker&&) = delete;

  void run(const schedule& plan);

  [[nodiscard]] const measurement& result() const noexcept { return result_; }
  [[nodiscard]] const std::string& body() const noexcept { return talk_->body(); }

 private:
  enum class state : std::uint8_t { connecting, open, closed };

  struct alignas(64) connection {  // a cache line: an event needs no other of the table
    common::unique_fd socket;
    std::uint32_t send_position = 0;  // in the exchange's requests
    std::uint64_t unsent_bytes = 0;   // of the requests in flight
    std::uint64_t answer_bytes = 0;   // of the answer in progress
    std::uint64_t answers = 0;
    std::int64_t progress_ns = 0;  // when a byte last went either way
    std::uint32_t in_flight = 0;   // requests without their whole answer, sent or not
    std::uint32_t oldest = 0;      // place of the oldest of them in started_ns_
    state now = state::open;
  };

  // The loop.
  void open_all();
  void turn();
  void begin_measuring();
  void end_measuring();
  [[nodiscard]] bool finished() const;
  [[nodiscard]] int timeout_ms() const;
  void close_stalled();
  void say_goodbye();
  void on_goodbye_event(connection& each);

  // One connection.
  void on_event(connection& each, std::uint32_t events);
  void receive(connection& each, std::uint32_t events);
  void take(connection& each, std::span<const std::byte> received);
  void send(connection& each);
  void on_end(connection& each);
  void on_connected(connection& each);
  void reconnect(connection& each);
  void close(connection& each);
  void fail(connection& each, fault kind, const std::string& detail);
  void fail_with_errno(connection& each, int error);

  // One request.
  [[nodiscard]] bool may_start(std::int64_t now_ns) const noexcept;
  void start_request(connection& each, std::int64_t now_ns);
  void finish_request(connection& each, std::int64_t now_ns);

  void watch(connection& each, int operation);
  [[nodiscard]] std::size_t slot(const connection& each) const noexcept;
  [[nodiscard]] std::int64_t& started_ns(const connection& each, std::uint32_t place) noexcept;

  worker_setup setup_;
  std::unique_ptr<exchange> talk_;
  const byte_loop& requests_;  // talk_ has this and the next, but asking it is a virtual call
  std::size_t request_bytes_;
  common::unique_fd epoll_;
  std::vector<connection> connections_;
  std::unique_ptr<std::int64_t[]> started_ns_;  // `inflight` places for each connection: a ring
  std::unique_ptr<std::byte[]> buffer_;         // one for all: bytes are judged as they come

  schedule plan_{};
  enum class phase { warming_up, measuring, over } phase_ = phase::warming_up;
  std::uint64_t requests_left_ = 0;  // of plan_.requests
  std::uint64_t in_flight_ = 0;
  std::size_t open_ = 0;            // connections that are not closed
  std::int64_t turn_ns_ = 0;        // when this turn's events came
  std::int64_t next_check_ns_ = 0;  // when to look for stalled connections again
  std::int64_t last_completed_ns_ = 0;
  thread_times at_begin_;
  measurement result_;
};

}  // namespace loadgen
