// SPDX-License-Identifier: MIT
// Time, counted in turns of the loop: a test decides which task comes first, and does not sleep.
// Lifetime the context and the source must live until the task has ended.
// Threads  the one that runs the context.
// Errors   std::system_error if a NOP fails.
#pragma once

#include "cancel_source.hpp"
#include "io_context.hpp"
#include "operations.hpp"
#include "task.hpp"

namespace course_test {

// Each NOP is answered in the next turn.
inline uring::task<> pass_turns(uring::io_context& context, int count) {
  for (int i = 0; i < count; ++i) {
    const uring::io_result turned = co_await uring::nop_op(context);
    turned.or_throw("nop");
  }
}

inline uring::task<> cancel_after(uring::io_context& context, int turns,
                                  uring::cancel_source& source) {
  co_await pass_turns(context, turns);
  source.cancel();
}

}  // namespace course_test
