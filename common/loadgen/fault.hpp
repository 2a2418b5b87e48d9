// SPDX-License-Identifier: MIT
// What went wrong with connections: how often, and how the first of each kind looked.
// Owns     its counts and sentences.
// Threads  one; each worker has its own, and they are merged at the end.
// Rule     a connection fails at most once: the first fault ends it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loadgen {

enum class fault { refused, reset, closed, stalled, corrupted, other };

constexpr std::array<std::string_view, 6> fault_names = {"refused", "reset",     "closed",
                                                         "stalled", "corrupted", "other"};

class fault_tally {
 public:
  // `detail` says what was seen, as in "connection 7, after 12 answers".
  void add(fault kind, std::string detail);
  void merge(const fault_tally& other);

  [[nodiscard]] std::uint64_t count(fault kind) const noexcept;
  [[nodiscard]] std::uint64_t total() const noexcept;

  // One sentence for each kind that occurred.
  [[nodiscard]] std::vector<std::string> sentences() const;

 private:
  struct entry {
    std::uint64_t count = 0;
    std::string first;
  };
  std::array<entry, fault_names.size()> entries_;
};

// The fault behind errno of a connect, recv or send.
[[nodiscard]] fault classify_socket_errno(int error) noexcept;

}  // namespace loadgen
