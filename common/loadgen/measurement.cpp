// SPDX-License-Identifier: MIT
#include "measurement.hpp"

namespace loadgen {

void measurement::merge(const measurement& other) {
  began_ns = std::min(began_ns, other.began_ns);
  ended_ns = std::max(ended_ns, other.ended_ns);
  completed += other.completed;
  on_wire += other.on_wire;
  bytes += other.bytes;
  latency.merge(other.latency);
  cpu += other.cpu;
  cpu_utilization = std::max(cpu_utilization, other.cpu_utilization);
  ready_share = std::max(ready_share, other.ready_share);
  reconnects += other.reconnects;
  left_open += other.left_open;
  bad_statuses += other.bad_statuses;
  for (const auto& [status, count] : other.statuses) statuses[status] += count;
  faults.merge(other.faults);
  interrupted = interrupted || other.interrupted;
}

}  // namespace loadgen
