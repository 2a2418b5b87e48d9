// SPDX-License-Identifier: MIT
// The first line a server prints: "listening on 127.0.0.1:PORT", flushed.
// Threads  any, once, before the first accept(): scripts wait for this line.
// Errors   std::system_error if the descriptor is no listening socket or stdout is closed.
// Rule     nothing else may stand before this line on stdout.
#pragma once

namespace common {

void announce(int listener);

}  // namespace common
