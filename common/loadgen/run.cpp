// SPDX-License-Identifier: MIT
#include "run.hpp"

#include <chrono>
#include <cmath>
#include <exception>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "echo_exchange.hpp"
#include "endpoint.hpp"
#include "http_exchange.hpp"
#include "pattern.hpp"
#include "worker.hpp"

namespace loadgen {
namespace {

using workers = std::vector<std::unique_ptr<worker>>;
using sockets = std::vector<common::unique_fd>;

std::int64_t nanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}

// The part of `whole` that share number `index` of `shares` gets: as even as can be.
template <typename Number>
Number share_of(Number whole, Number shares, Number index) {
  return whole / shares + (index < whole % shares ? 1 : 0);
}

workers make_workers(const options& asked, const endpoint& server, const byte_loop& pattern,
                     const common::stop_signal& stop, sockets all) {
  workers result;
  std::size_t first = 0;
  for (std::uint32_t index = 0; index < asked.threads; ++index) {
    const std::size_t count = share_of(asked.connections, asked.threads, index);
    const auto begin = std::make_move_iterator(all.begin() + static_cast<std::ptrdiff_t>(first));
    sockets own{begin, begin + static_cast<std::ptrdiff_t>(count)};
    std::unique_ptr<exchange> talk;
    if (asked.mode == protocol::echo) {
      talk = std::make_unique<echo_exchange>(pattern, asked.message_bytes, first, count);
    } else {
      talk = std::make_unique<http_exchange>(server.text(), asked.path, count);
    }
    const worker_setup setup{.server = server,
                             .first_connection = first,
                             .inflight = asked.inflight,
                             .stall_timeout_ns = nanoseconds(asked.stall_timeout_s),
                             .stop_fd = stop.fd()};
    result.push_back(std::make_unique<worker>(setup, std::move(talk), std::move(own)));
    first += count;
  }
  return result;
}

schedule plan_for(const options& asked, std::int64_t start_ns, std::uint32_t index) {
  schedule plan{.measure_from_ns = start_ns + nanoseconds(asked.warmup_s)};
  if (asked.requests) {
    plan.requests = share_of<std::uint64_t>(*asked.requests, asked.threads, index);
  } else {
    plan.until_ns = plan.measure_from_ns + nanoseconds(asked.duration_s);
  }
  return plan;
}

// The first worker runs right here: a process with one thread shares its descriptor table with
// nobody, and saves the kernel two atomic operations a call.
void run_all(const workers& all, const options& asked) {
  const auto start = std::chrono::steady_clock::now().time_since_epoch();
  const std::int64_t start_ns = start / std::chrono::nanoseconds{1};
  std::vector<std::exception_ptr> failures(all.size());
  const auto run_one = [&](std::uint32_t index) {
    try {
      all[index]->run(plan_for(asked, start_ns, index));
    } catch (...) {
      failures[index] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::uint32_t index = 1; index < asked.threads; ++index)
      others.emplace_back(run_one, index);
    run_one(0);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

// Each worker has compared its own answers with one body. All workers must have had the same body.
void compare_bodies(const workers& all, measurement& result) {
  const std::string* first = nullptr;
  for (const auto& each : all) {
    const std::string& body = each->body();
    if (body.empty()) continue;
    if (first == nullptr) first = &body;
    if (body != *first) result.faults.add(fault::corrupted, "two threads got different bodies");
  }
}

}  // namespace

measurement run(const options& asked, const common::stop_signal& stop) {
  const endpoint server{asked.host, asked.port};
  prepare_limits(asked.connections);
  const std::chrono::nanoseconds patience{nanoseconds(asked.stall_timeout_s)};
  connected made = connect_many(server, asked.connections, patience, stop.fd());
  measurement result;
  result.faults = made.faults;
  result.interrupted = made.interrupted;
  if (made.sockets.size() < asked.connections) return result;

  const byte_loop pattern = make_pattern(asked.connections);
  const workers all = make_workers(asked, server, pattern, stop, std::move(made.sockets));
  run_all(all, asked);
  for (const auto& each : all) result.merge(each->result());
  compare_bodies(all, result);
  return result;
}

}  // namespace loadgen
