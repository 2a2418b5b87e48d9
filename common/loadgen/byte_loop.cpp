// SPDX-License-Identifier: MIT
#include "byte_loop.hpp"

#include <cassert>
#include <functional>
#include <utility>

namespace loadgen {

byte_loop::byte_loop(std::vector<std::byte> period)
    : period_{period.size()}, bytes_{std::move(period)} {
  assert(period_ > 0 && "nothing cannot be repeated");
  bytes_.resize(period_ + piece_bytes_max);
  // Each round doubles what is there, so a short period takes few rounds, too.
  for (std::size_t filled = period_; filled < bytes_.size();) {
    const std::size_t count = std::min(filled, bytes_.size() - filled);
    std::copy_n(bytes_.begin(), count, bytes_.begin() + static_cast<std::ptrdiff_t>(filled));
    filled += count;
  }
}

std::optional<std::size_t> byte_loop::find(std::span<const std::byte> wanted) const noexcept {
  const auto found = std::search(bytes_.begin(), bytes_.end(), wanted.begin(), wanted.end());
  if (found == bytes_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - bytes_.begin()) % period_;
}

}  // namespace loadgen
