// SPDX-License-Identifier: MIT
// 07-nops: measures a wait that ends immediately: a NOP through the ring, by hand and by co_await.
// Compares the NOP with ways that do not use the ring.
//
//   ./course run 07:nops
//   ./course run 07:nops -- --way coroutine --batch 64 --count 100000
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "io_context.hpp"
#include "operations.hpp"
#include "program_main.hpp"
#include "ring.hpp"

namespace {

constexpr std::int64_t batch_max = 256;  // the submission queue's size
constexpr int rounds = 5;                // of the table

// By hand, as in chapter 05: `batch` requests for each entry into the kernel.
void raw_nops(std::int64_t count, std::int64_t batch) {
  uring::ring ring{{}};
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t now = std::min(batch, count - done);
    for (std::int64_t i = 0; i < now; ++i) {
      ::io_uring_sqe& sqe = ring.get_sqe();
      ::io_uring_prep_nop(&sqe);
      ::io_uring_sqe_set_data64(&sqe, 0);
    }
    (void)ring.submit_and_wait();
    done += static_cast<std::int64_t>(ring.reap().size());
  }
}

uring::task<> await_nops(uring::io_context& context, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const uring::io_result done = co_await uring::nop_op(context);
    done.or_throw("nop");
  }
}

// The same with frames: `batch` tasks, each with one request in flight.
void coroutine_nops(std::int64_t count, std::int64_t batch) {
  uring::io_context context;
  for (std::int64_t i = 0; i < batch; ++i) {
    context.spawn(await_nops(context, count / batch + (i < count % batch ? 1 : 0)));
  }
  context.run();
}

void yields(std::int64_t count, std::int64_t) {
  for (std::int64_t i = 0; i < count; ++i) std::this_thread::yield();
}

void pauses(std::int64_t count, std::int64_t) {
  for (std::int64_t i = 0; i < count; ++i) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
}

struct way {
  std::string_view name;
  std::int64_t batch;
  void (*run)(std::int64_t count, std::int64_t batch);
};

constexpr std::array<way, 6> ways{{
    {"raw", 1, &raw_nops},
    {"coroutine", 1, &coroutine_nops},
    {"raw", 64, &raw_nops},
    {"coroutine", 64, &coroutine_nops},
    {"yield", 1, &yields},
    {"pause", 1, &pauses},
}};

double ns_per_operation(const way& chosen, std::int64_t count) {
  const auto start = std::chrono::steady_clock::now();
  chosen.run(count, chosen.batch);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return took.count() / static_cast<double>(count);
}

// Each round runs every way once, so that a busy moment of the machine hits them all.
void compare(std::int64_t count) {
  std::array<std::vector<double>, ways.size()> ns;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      ns[i].push_back(ns_per_operation(ways[i], count));
    }
  }
  std::cout << "way        batch   ns: median (least to most of " << rounds << " rounds)\n"
            << std::fixed << std::setprecision(1);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    std::ranges::sort(ns[i]);
    std::cout << std::left << std::setw(10) << ways[i].name << std::right << std::setw(6)
              << ways[i].batch << std::setw(13) << ns[i][rounds / 2] << " (" << ns[i].front()
              << " to " << ns[i].back() << ")\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string chosen = "all";
  std::int64_t batch = 1;
  std::int64_t count = 100'000;
  common::flag_set flags{"Chapter 07: NOPs, awaited and not, and two ways to do nothing at all."};
  flags.add("--way", chosen, {"all", "raw", "coroutine", "yield", "pause"},
            "One way alone, or all of them in a table");
  flags.add("--batch", batch, 1, batch_max, "With one way: NOPs for each entry into the kernel");
  flags.add("--count", count, 1, 1'000'000'000, "Operations of each way");
  return common::program_main(argc, argv, flags, [&] {
    if (chosen == "all") return compare(count);
    const auto* const found = std::ranges::find(ways, chosen, &way::name);
    const double ns = ns_per_operation({found->name, batch, found->run}, count);
    std::cout << "ns per operation: " << std::fixed << std::setprecision(1) << ns << '\n';
  });
}
