// SPDX-License-Identifier: MIT
// How long requests took: log-linear buckets of nanoseconds, each at most 1/64 of its value wide.
// Owns     its buckets: 18 KiB, however many values it holds.
// Threads  one; each worker has its own, and they are merged at the end.
// Errors   none: a value beyond 18 minutes counts as 18 minutes in the buckets, max_ns() is exact.
// Rule     a percentile is never too small, and at most 1.6 % too large.
// See      "HdrHistogram", where the idea is from
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace loadgen {

class latency_histogram {
 public:
  void add(std::int64_t value_ns) noexcept {
    const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(value_ns, 0));
    ++counts_[bucket_of(value)];
    ++count_;
    sum_ns_ += value;
    max_ns_ = std::max(max_ns_, value);
  }
  void merge(const latency_histogram& other) noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t max_ns() const noexcept { return max_ns_; }
  [[nodiscard]] double mean_ns() const noexcept;

  // The value that `share` of all values do not exceed: 0.99 gives p99. 0 while empty.
  [[nodiscard]] std::uint64_t percentile_ns(double share) const noexcept;

  // Calls visit(upper_ns, count) for every bucket that holds something, in rising order.
  template <typename Visitor>
  void for_each_bucket(Visitor&& visit) const {
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
      if (counts_[bucket] > 0) visit(upper_ns(bucket), counts_[bucket]);
    }
  }

 private:
  // Values below 128 have a bucket each; above, every doubling has 64.
  static constexpr unsigned exact_bits = 7;
  static constexpr unsigned value_bits_max = 40;
  static constexpr std::size_t per_doubling = 1u << (exact_bits - 1);
  static constexpr std::size_t buckets = per_doubling * (value_bits_max - exact_bits + 2);

  static std::size_t bucket_of(std::uint64_t value) noexcept {
    value = std::min(value, (std::uint64_t{1} << value_bits_max) - 1);
    const auto bits = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = bits > exact_bits ? bits - exact_bits : 0;
    return per_doubling * shift + (value >> shift);
  }

  // The largest value that falls into the bucket, or the largest seen if that is less.
  [[nodiscard]] std::uint64_t upper_ns(std::size_t bucket) const noexcept;

  std::array<std::uint64_t, buckets> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t sum_ns_ = 0;
  std::uint64_t max_ns_ = 0;
};

}  // namespace loadgen
