// SPDX-License-Identifier: MIT
// Does many pieces of work, but at most `window` of them at a time.
// Lifetime `others` and `work` must live until the task has ended.
// Threads  the one that runs the io_context.
// Errors   the first exception of `work` cancels `others`, and is thrown when all pieces that were
//          begun have ended. No piece is begun after a cancel.
// Rule     each of `window` workers takes the next piece when its last one has ended. So there are
//          never more than `window` pieces in flight, and fewer only at the end or after a cancel.
#pragma once

#include <cstddef>
#include <vector>

#include "cancel_source.hpp"
#include "task.hpp"
#include "when_all.hpp"

namespace uring {

// --8<-- [start:in-window]
template <typename Work>
task<> take_pieces(cancel_source& others, std::size_t& next, std::size_t count, Work& work) {
  while (next < count && !others.is_canceled()) co_await work(next++);
}

// Awaits work(0) to work(count - 1), each of which is a task<>.
template <typename Work>
task<> in_window(cancel_source& others, std::size_t window, std::size_t count, Work& work) {
  std::size_t next = 0;
  std::vector<task<>> workers;
  for (std::size_t i = 0; i < window && i < count; ++i) {
    workers.push_back(take_pieces(others, next, count, work));
  }
  co_await when_all(others, std::move(workers));
}
// --8<-- [end:in-window]

}  // namespace uring
