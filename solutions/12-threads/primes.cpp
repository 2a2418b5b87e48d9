// SPDX-License-Identifier: MIT
// 12-primes: work for the processor, cut in pieces, and each piece a coroutine on a pool.
//
//   ./course run 12:primes -- --threads 2
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "program_main.hpp"
#include "sync_wait.hpp"
#include "task.hpp"
#include "thread_pool.hpp"

namespace {

bool is_prime(std::int64_t number) {
  for (std::int64_t divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) return false;
  }
  return number > 1;
}

// Which threads have counted.
class noted_threads {
 public:
  void note() {
    const std::lock_guard lock{mutex_};
    ids_.insert(std::this_thread::get_id());
  }
  [[nodiscard]] std::size_t count() const { return ids_.size(); }

 private:
  std::mutex mutex_;
  std::set<std::thread::id> ids_;
};

uring::task<std::int64_t> count_primes(uring::thread_pool& pool, noted_threads& used,
                                       std::int64_t from, std::int64_t below) {
  co_await pool.schedule();
  used.note();
  std::int64_t primes = 0;
  for (std::int64_t number = from; number < below; ++number) primes += is_prime(number) ? 1 : 0;
  co_return primes;
}

void show(std::size_t threads, std::int64_t below, std::int64_t pieces) {
  uring::thread_pool pool{threads};
  noted_threads used;
  const auto start = std::chrono::steady_clock::now();
  std::vector<uring::task<std::int64_t>> all;
  all.reserve(static_cast<std::size_t>(pieces));
  for (std::int64_t i = 0; i < pieces; ++i) {
    all.push_back(count_primes(pool, used, below * i / pieces, below * (i + 1) / pieces));
  }
  const std::vector<std::int64_t> counts = uring::sync_wait_all(std::move(all));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::printf("%lld primes below %lld, in %lld pieces; threads: %zu; %.0f ms\n",
              static_cast<long long>(std::accumulate(counts.begin(), counts.end(), 0LL)),
              static_cast<long long>(below), static_cast<long long>(pieces), used.count(),
              took.count());
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 12: primes, counted on a pool of threads."};
  std::int64_t threads = 2;
  std::int64_t below = 2'000'000;
  std::int64_t pieces = 64;
  flags.add("--threads", threads, 1, 64, "Threads of the pool");
  flags.add("--below", below, 1, 100'000'000, "Numbers to look at");
  flags.add("--pieces", pieces, 1, 10'000, "Pieces of the work");
  return common::program_main(argc, argv, flags,
                              [&] { show(static_cast<std::size_t>(threads), below, pieces); });
}
