// SPDX-License-Identifier: MIT
// 04-nops: requests that do nothing, many for each entry into the kernel.
//
//   ./course run 04:nops -- --batch 8 --count 6400
//   ./course run 04:nops -- --compare
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <vector>

#include "program_main.hpp"
#include "raw_ring.hpp"
#include "ring_memory.hpp"

namespace {

constexpr std::int64_t batch_max = 4096;
constexpr std::int64_t count_max = 1'000'000'000;
constexpr int rounds = 5;  // of a comparison
constexpr std::array<std::uint32_t, 4> compared{1, 8, 64, 512};

struct outcome {
  std::uint64_t nops = 0;
  std::uint64_t enters = 0;
  double ns_per_nop = 0;
};

// --8<-- [start:batch]
// Takes batch.size() SQEs, submits them, and reaps their completions. Returns the number of enters.
std::uint64_t run_batch(uring::raw_ring& ring, std::span<uring::raw_completion> batch) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    ::io_uring_sqe& sqe = *ring.try_get_sqe();  // the ring has room for a batch
    sqe.opcode = IORING_OP_NOP;
    sqe.user_data = i;
  }
  std::uint64_t enters = 0;
  for (std::size_t reaped = 0; reaped < batch.size(); ++enters) {
    ring.submit_and_wait(static_cast<unsigned>(batch.size() - reaped));
    reaped += ring.reap(batch.subspan(reaped));
  }
  return enters;
}
// --8<-- [end:batch]

void check_order(std::span<const uring::raw_completion> batch) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].user_data != i || batch[i].res != 0) {
      throw std::runtime_error{"a NOP came back wrong: is a slot's mask missing?"};
    }
  }
}

outcome run_nops(std::uint32_t batch, std::uint64_t count) {
  uring::ring_memory memory{batch};
  uring::raw_ring ring{memory.view()};
  std::vector<uring::raw_completion> completions(batch);
  outcome all;
  const auto start = std::chrono::steady_clock::now();
  while (all.nops < count) {
    const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(batch, count - all.nops));
    all.enters += run_batch(ring, std::span{completions}.first(now));
    check_order(std::span{completions}.first(now));
    all.nops += now;
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  all.ns_per_nop = took.count() / static_cast<double>(all.nops);
  return all;
}

// Each round runs every batch size once, so that a busy moment of the machine hits them all.
void compare(std::uint64_t count) {
  std::array<std::vector<double>, compared.size()> ns;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < compared.size(); ++i) {
      ns[i].push_back(run_nops(compared[i], count).ns_per_nop);
    }
  }
  std::cout << "batch   ns per NOP: median (least to most of " << rounds << " rounds)\n"
            << std::fixed << std::setprecision(0);
  for (std::size_t i = 0; i < compared.size(); ++i) {
    std::ranges::sort(ns[i]);
    std::cout << std::setw(5) << compared[i] << std::setw(13) << ns[i][rounds / 2] << " ("
              << ns[i].front() << " to " << ns[i].back() << ")\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t batch = 64;
  std::int64_t count = 100'000;
  bool comparing = false;
  common::flag_set flags{"Chapter 04: NOPs through a ring of our own making, in batches."};
  flags.add("--batch", batch, 1, batch_max, "NOPs for each entry into the kernel");
  flags.add("--count", count, 1, count_max, "NOPs in all");
  flags.add("--compare", comparing, "Show what a NOP takes at several batch sizes");
  return common::program_main(argc, argv, flags, [&] {
    if (comparing) return compare(static_cast<std::uint64_t>(count));
    const outcome all =
        run_nops(static_cast<std::uint32_t>(batch), static_cast<std::uint64_t>(count));
    std::cout << all.nops << " NOPs, " << all.enters << " enters\n";
  });
}
