// SPDX-License-Identifier: MIT
// The program but for main(): flags, one run, its report, the exit code.
// Owns     what it opens, until it returns.
// Threads  main(), before any other thread exists.
// Errors   none thrown: a sentence on stderr, and the exit code that --help explains.
// Rule     a result that was asked for as JSON is written even if the run has failed.
#pragma once

namespace loadgen {

[[nodiscard]] int run_program(int argc, char** argv);

}  // namespace loadgen
