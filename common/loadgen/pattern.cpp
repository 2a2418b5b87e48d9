// SPDX-License-Identifier: MIT
#include "pattern.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace loadgen {
namespace {

// SplitMix64 is the simplest generator of which every byte passes tests for randomness. It always
// starts in the same way, so that two runs send the same bytes.
class generator {
 public:
  std::uint64_t operator()() noexcept {
    std::uint64_t mixed = state_ += 0x9e37'79b9'7f4a'7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58'476d'1ce4'e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d0'49bb'1331'11eb;
    return mixed ^ (mixed >> 31);
  }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace

byte_loop make_pattern(std::size_t connections) {
  generator random;
  std::vector<std::byte> bytes(pattern_period(connections));
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return byte_loop{std::move(bytes)};
}

}  // namespace loadgen
