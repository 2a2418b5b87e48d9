// SPDX-License-Identifier: MIT
// What a run measured: one worker's part, or all parts merged.
// Threads  one at a time.
// Rule     `completed` and all times leave out the warm-up and what ended after the run;
//          `on_wire` and the faults leave out nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "fault.hpp"
#include "latency_histogram.hpp"
#include "thread_clock.hpp"

namespace loadgen {

struct measurement {
  std::int64_t began_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t ended_ns = 0;
  std::uint64_t completed = 0;
  std::uint64_t on_wire = 0;       // answers in all, warm-up and tail included
  std::uint64_t bytes = 0;         // of the completed answers
  latency_histogram latency;       // of those whose request was sent after the warm-up
  thread_times cpu;                // between began_ns and ended_ns
  double cpu_utilization = 0;      // of the busiest thread: its CPU time by its time
  double ready_share = 0;          // the same with the time it waited for a CPU: see limited()
  std::uint64_t reconnects = 0;    // after an announced "Connection: close"
  std::uint64_t left_open = 0;     // the server did not close within a second of our FIN
  std::uint64_t bad_statuses = 0;  // HTTP 400 and above
  std::map<int, std::uint64_t> statuses;
  fault_tally faults;
  std::string not_started;   // why there was no run at all; else empty
  bool interrupted = false;  // by a signal

  void merge(const measurement& other);

  [[nodiscard]] double seconds() const noexcept {
    return static_cast<double>(std::max<std::int64_t>(ended_ns - began_ns, 0)) / 1e9;
  }

  // Whether the client, and not the server, has limited the speed of the run. A thread that was
  // running, or ready to run but without a CPU, in 95 % of the time had next to no time to wait for
  // answers. CPU use alone would miss a client that shares its CPU with another program.
  [[nodiscard]] bool limited() const noexcept { return ready_share >= limited_share; }
  static constexpr double limited_share = 0.95;

  [[nodiscard]] bool ok() const noexcept {
    return faults.total() == 0 && bad_statuses == 0 && not_started.empty() && !interrupted;
  }
};

}  // namespace loadgen
