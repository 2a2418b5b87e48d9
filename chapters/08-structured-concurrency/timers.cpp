// SPDX-License-Identifier: MIT
// 08-timers: three timers of 1, 2 and 3 units, put together in four ways, and a deadline.
//
//   ./course run 08:timers
//   ./course run 08:timers -- --unit-ms 1000
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>

#include "cancel_source.hpp"
#include "deadline.hpp"
#include "io_context.hpp"
#include "operations.hpp"
#include "program_main.hpp"
#include "task.hpp"
#include "when_all.hpp"
#include "when_any.hpp"

namespace {

using std::chrono::milliseconds;
using uring::cancel_source;
using uring::io_context;
using uring::io_result;
using uring::task;

task<> sleep_for(uring::io_handle io, milliseconds how_long) {
  const io_result ended = co_await uring::timeout_op(io, how_long);
  const bool is_over = ended.error() == ETIME || ended.error() == ECANCELED;
  if (!is_over) ended.or_throw("timeout");
}

task<> one_after_the_other(io_context& context, milliseconds unit) {
  co_await sleep_for(context, 1 * unit);
  co_await sleep_for(context, 2 * unit);
  co_await sleep_for(context, 3 * unit);
}

task<> all_at_once(io_context& context, milliseconds unit) {
  cancel_source source{context};
  co_await uring::when_all(source, sleep_for(source, 1 * unit), sleep_for(source, 2 * unit),
                           sleep_for(source, 3 * unit));
}

task<> until_the_first(io_context& context, milliseconds unit) {
  cancel_source source{context};
  co_await uring::when_any(source, sleep_for(source, 1 * unit), sleep_for(source, 2 * unit),
                           sleep_for(source, 3 * unit));
}

// A timer that the next request in the queue waits for. A plain link would be cut, because a
// timeout ends with -ETIME, which is an error.
task<> sleep_before_the_next(io_context& context, milliseconds how_long) {
  const io_result ended =
      co_await uring::with_flags(uring::timeout_op(context, how_long), IOSQE_IO_HARDLINK);
  if (ended.error() != ETIME) ended.or_throw("timeout");
}

// One after the other again, but one system call submits all, and the kernel starts each in turn.
task<> chained(io_context& context, milliseconds unit) {
  cancel_source source{context};
  context.reserve(3);
  co_await uring::when_all(source, sleep_before_the_next(context, 1 * unit),
                           sleep_before_the_next(context, 2 * unit), sleep_for(source, 3 * unit));
}

// Without the deadline, the timer would run for 60 units.
task<> until_the_deadline(io_context& context, milliseconds unit) {
  const io_result ended =
      co_await uring::with_deadline(uring::timeout_op(context, 60 * unit), 1 * unit);
  if (ended.error() != ETIME) ended.or_throw("timeout");
}

void measure(const char* what, task<> (*timers)(io_context&, milliseconds), milliseconds unit) {
  io_context context;
  const auto began = std::chrono::steady_clock::now();
  context.run(timers(context, unit));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  const auto units = took.count() / static_cast<double>(unit.count());
  std::printf("%-20s %5.2f units, %zu in flight at the end\n", what, units, context.in_flight());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t unit_ms = 100;
  common::flag_set flags{"Chapter 08: timers of 1, 2 and 3 units, in sequence and in parallel."};
  flags.add("--unit-ms", unit_ms, 1, 60'000, "How long a unit is");
  return common::program_main(argc, argv, flags, [&] {
    const milliseconds unit{unit_ms};
    measure("one after the other:", one_after_the_other, unit);
    measure("chained:", chained, unit);
    measure("all at once:", all_at_once, unit);
    measure("until the first:", until_the_first, unit);
    measure("until the deadline:", until_the_deadline, unit);
  });
}
