// SPDX-License-Identifier: MIT
// Counts what the server has done. Each thread counts by itself, and to_text() adds the counts up.
// Threads  each counts in an object of its own; any may read. A sum may be a moment old.
// Rule     only one thread writes a counter, so a load and a store are enough, and no other
//          thread's counter is in the same cache line.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace uring::http {

enum class counted : std::size_t {
  connections,
  requests,
  answers_2xx,
  answers_3xx,
  answers_4xx,
  answers_5xx,
  cache_hits,
  cache_loads,
  refused_requests,
  timed_out,
  evicted_idle,
  log_lines_lost,
};

inline constexpr std::array<std::string_view, 12> counter_names{
    "connections",      "requests",    "answers_2xx",  "answers_3xx",
    "answers_4xx",      "answers_5xx", "cache_hits",   "cache_loads",
    "refused_requests", "timed_out",   "evicted_idle", "log_lines_lost",
};

class alignas(64) counters {
 public:
  void add(counted what, std::uint64_t more = 1) noexcept {
    std::atomic<std::uint64_t>& value = values_[static_cast<std::size_t>(what)];
    value.store(value.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  void add_answer(int status) noexcept {
    const auto hundreds = static_cast<std::size_t>(status) / 100 - 2;
    add(static_cast<counted>(static_cast<std::size_t>(counted::answers_2xx) + hundreds));
  }
  [[nodiscard]] std::uint64_t read(counted which) const noexcept {
    return read(static_cast<std::size_t>(which));
  }
  [[nodiscard]] std::uint64_t read(std::size_t which) const noexcept {
    return values_[which].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, counter_names.size()> values_{};
};

// A line such as "requests 42" for each counter, with the sum over all threads.
[[nodiscard]] inline std::string to_text(std::span<const counters> all) {
  std::string text;
  for (std::size_t which = 0; which < counter_names.size(); ++which) {
    std::uint64_t sum = 0;
    for (const counters& each : all) sum += each.read(which);
    text.append(counter_names[which]).append(" ").append(std::to_string(sum)).append("\n");
  }
  return text;
}

}  // namespace uring::http
