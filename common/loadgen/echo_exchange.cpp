// SPDX-License-Identifier: MIT
#include "echo_exchange.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "pattern.hpp"

namespace loadgen {
namespace {

constexpr std::size_t shown_bytes_max = 8;
// A sequence of this length is in one place of the pattern only; a shorter one may be in two.
constexpr std::size_t telling_bytes = 8;
// A server may mix up messages that it holds. Bytes that are further from their place than this,
// in messages or in bytes, belong to another connection.
constexpr std::size_t shift_messages_max = 4;
constexpr std::size_t shift_bytes_max = 16 * 1024;

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte each : bytes.first(std::min(bytes.size(), shown_bytes_max))) {
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", static_cast<unsigned>(each));
  }
  return text;
}

std::string some_bytes(std::size_t count, std::string_view what) {
  return fmt::format("{} byte{} {}", count, count == 1 ? "" : "s", what);
}

}  // namespace

echo_exchange::echo_exchange(const byte_loop& pattern, std::size_t message_bytes,
                             std::size_t first_connection, std::size_t connections)
    : pattern_{pattern},
      message_bytes_{message_bytes},
      first_connection_{first_connection},
      progress_(connections) {
  for (std::size_t slot = 0; slot < connections; ++slot) reconnect(slot);
}

std::size_t echo_exchange::first_request(std::size_t slot) const noexcept {
  return pattern_start(first_connection_ + slot, pattern_.period());
}

void echo_exchange::reconnect(std::size_t slot) {
  progress_[slot] = {.position = static_cast<std::uint32_t>(first_request(slot))};
}

taken echo_exchange::take(std::size_t slot, std::span<const std::byte> received) {
  progress& now = progress_[slot];
  const std::size_t count = std::min(received.size(), message_bytes_ - now.message_taken);
  const auto expected = pattern_.piece(now.position, count);
  if (std::memcmp(received.data(), expected.data(), count) != 0) {
    return wrong(explain(slot, received));
  }
  now.received += count;
  now.position = static_cast<std::uint32_t>(pattern_.advance(now.position, count));
  now.message_taken += static_cast<std::uint32_t>(count);
  if (now.message_taken < message_bytes_) return {count, verdict::unfinished};
  now.message_taken = 0;
  return {count, verdict::answered};
}

verdict echo_exchange::take_end(std::size_t) {
  return verdict::unfinished;
}

std::string echo_exchange::describe_progress(std::size_t slot) const {
  const progress& now = progress_[slot];
  return fmt::format("{} of {} bytes of echo {} had come", now.message_taken, message_bytes_,
                     now.received / message_bytes_ + 1);
}

// `received` differs somewhere from what should stand there.
std::string echo_exchange::explain(std::size_t slot, std::span<const std::byte> received) const {
  const progress& now = progress_[slot];
  const auto expected = pattern_.piece(now.position, received.size());
  const auto [wrong, right] = std::ranges::mismatch(received, expected);
  const auto good = static_cast<std::size_t>(wrong - received.begin());
  const std::size_t expected_at = pattern_.advance(now.position, good);
  const auto bad = received.subspan(good);
  return fmt::format("at offset {}: expected {}, received {}: {}", now.received + good,
                     hex(pattern_.piece(expected_at, bad.size())), hex(bad),
                     guess_cause(slot, expected_at, bad));
}

// `received` should have been the pattern from `expected_at` on; its first byte is not.
std::string echo_exchange::guess_cause(std::size_t slot, std::size_t expected_at,
                                       std::span<const std::byte> received) const {
  const auto expected = pattern_.piece(expected_at, received.size());
  const auto right_again_at = [&](std::size_t from) {
    if (received.size() < from + 2) return false;  // a single byte is right too often by chance
    const std::size_t count = std::min(received.size() - from, telling_bytes);
    return std::ranges::equal(received.subspan(from, count), expected.subspan(from, count));
  };
  if (right_again_at(1)) return "one byte was changed";
  if (right_again_at(2) && received[0] == expected[1] && received[1] == expected[0]) {
    return "two neighboring bytes changed places";
  }
  if (received.size() < telling_bytes) return "too few bytes came with it to tell why";
  const auto found_at = pattern_.find(received.first(telling_bytes));
  if (!found_at) return "several bytes were changed, or nobody sent them";
  return guess_origin(slot, expected_at, *found_at);
}

// The received bytes are in the pattern at `found_at`: says which connection they belong to.
std::string echo_exchange::guess_origin(std::size_t slot, std::size_t expected_at,
                                        std::size_t found_at) const {
  const std::size_t period = pattern_.period();
  const std::size_t ahead = (found_at + period - expected_at) % period;
  const std::size_t behind = period - ahead;
  const auto distance_to = [&](const progress& other) {
    const std::size_t forward = (found_at + period - other.position) % period;
    return std::min(forward, period - forward);
  };
  const auto nearest = std::ranges::min_element(progress_, {}, distance_to);
  const auto nearest_slot = static_cast<std::size_t>(nearest - progress_.begin());
  const std::size_t own = std::min(ahead, behind);
  if (nearest_slot != slot && distance_to(*nearest) < own) {
    return fmt::format("these bytes belong to connection {}", first_connection_ + nearest_slot);
  }
  if (own > std::min(shift_messages_max * message_bytes_, shift_bytes_max)) {
    return "these bytes belong to another connection";
  }
  if (ahead < behind) return some_bytes(ahead, "before these are missing or come later");
  return some_bytes(behind, "came twice or too late");
}

}  // namespace loadgen
