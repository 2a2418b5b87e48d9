// SPDX-License-Identifier: MIT
#include "latency_histogram.hpp"

#include <cmath>

namespace loadgen {

void latency_histogram::merge(const latency_histogram& other) noexcept {
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    counts_[bucket] += other.counts_[bucket];
  }
  count_ += other.count_;
  sum_ns_ += other.sum_ns_;
  max_ns_ = std::max(max_ns_, other.max_ns_);
}

double latency_histogram::mean_ns() const noexcept {
  if (count_ == 0) return 0;
  return static_cast<double>(sum_ns_) / static_cast<double>(count_);
}

std::uint64_t latency_histogram::percentile_ns(double share) const noexcept {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    seen += counts_[bucket];
    if (seen > 0 && seen >= wanted) return upper_ns(bucket);
  }
  return 0;
}

std::uint64_t latency_histogram::upper_ns(std::size_t bucket) const noexcept {
  if (bucket + 1 == buckets) return max_ns_;
  const std::size_t shift = bucket < 2 * per_doubling ? 0 : bucket / per_doubling - 1;
  const std::uint64_t upper = ((bucket - per_doubling * shift + 1) << shift) - 1;
  return std::min<std::uint64_t>(upper, max_ns_);
}

}  // namespace loadgen
