// SPDX-License-Identifier: MIT
// 12-ticks: one task ticks, while another has to wait for something that blocks its thread.
//
//   ./course run 12:ticks -- --where pool
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

#include "blocking_pool.hpp"
#include "io_context.hpp"
#include "operations.hpp"
#include "program_main.hpp"
#include "task.hpp"

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds tick{10};

// The longest pause between two ticks while the other task works.
struct pauses {
  bool works = true;
  milliseconds longest{0};
  int ticks = 0;
};

uring::task<> tick_on(uring::io_context& context, pauses& seen) {
  while (seen.works) {
    const auto before = steady_clock::now();
    (void)co_await uring::timeout_op(context, tick);
    const auto pause = std::chrono::duration_cast<milliseconds>(steady_clock::now() - before);
    seen.longest = std::max(seen.longest, pause);
    ++seen.ticks;
  }
}

// Blocks its thread, as getaddrinfo() does when a name server does not answer.
struct block {
  milliseconds how_long;

  void operator()() const { std::this_thread::sleep_for(how_long); }
};

uring::task<> work_here(block work, pauses& seen) {
  work();
  seen.works = false;
  co_return;
}

uring::task<> work_elsewhere(uring::blocking_pool& pool, block work, pauses& seen) {
  co_await pool.invoke(work);
  seen.works = false;
}

void show(milliseconds how_long, bool elsewhere) {
  pauses seen;
  uring::io_context context;
  uring::blocking_pool pool{context, 1};
  context.spawn(tick_on(context, seen));
  context.spawn(elsewhere ? work_elsewhere(pool, block{how_long}, seen)
                          : work_here(block{how_long}, seen));
  context.run();
  std::printf("ticks: %d, one every %lld ms; the longest pause was %lld ms\n", seen.ticks,
              static_cast<long long>(tick.count()), static_cast<long long>(seen.longest.count()));
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 12: a task that ticks, beside work that blocks."};
  std::int64_t work_ms = 200;
  std::string where = "here";
  flags.add("--work-ms", work_ms, 0, 60'000, "How long the work blocks its thread");
  flags.add("--where", where, {"here", "pool"}, "Which thread it blocks");
  return common::program_main(argc, argv, flags,
                              [&] { show(milliseconds{work_ms}, where == "pool"); });
}
