// SPDX-License-Identifier: MIT
// One run: connect, split the connections over threads, measure, merge.
// Owns     everything it opens, until it returns.
// Threads  main(); it starts the workers' threads and joins them.
// Errors   std::exception for what keeps the run from starting; all else is in the measurement.
// Rule     a run starts with every connection it was asked for, or not at all: with fewer it would
//          measure something else.
#pragma once

#include "measurement.hpp"
#include "options.hpp"
#include "stop_signal.hpp"

namespace loadgen {

[[nodiscard]] measurement run(const options& asked, const common::stop_signal& stop);

}  // namespace loadgen
