// SPDX-License-Identifier: MIT
// A measurement, for people and for programs.
// Errors   std::bad_alloc.
// Rule     print nothing that was not measured: without answers there is no throughput.
#pragma once

#include <string>
#include <vector>

#include "measurement.hpp"
#include "options.hpp"

namespace loadgen {

// "Target: ...": what will run.
[[nodiscard]] std::string describe_target(const options& asked);

// "Completed ...", throughput, latency, the client's own cost.
[[nodiscard]] std::string describe_result(const options& asked, const measurement& result);

// One sentence for each kind of trouble; empty when there was none.
[[nodiscard]] std::vector<std::string> describe_trouble(const measurement& result);

// The same as one JSON object.
[[nodiscard]] std::string to_json(const options& asked, const measurement& result);

}  // namespace loadgen
