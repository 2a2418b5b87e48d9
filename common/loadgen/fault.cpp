// SPDX-License-Identifier: MIT
#include "fault.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <utility>

namespace loadgen {
namespace {

std::string what_happened(fault kind, std::uint64_t count) {
  const std::string_view be = count == 1 ? "was" : "were";
  switch (kind) {
    case fault::refused:
      return fmt::format("{} refused: nothing listens there", be);
    case fault::reset:
      return fmt::format("{} reset by the server", be);
    case fault::closed:
      return fmt::format("{} closed by the server before it had answered", be);
    case fault::stalled:
      return "stalled: the server neither answered nor closed";
    case fault::corrupted:
      return "brought wrong bytes";
    case fault::other:
      break;
  }
  return "failed in another way";
}

}  // namespace

void fault_tally::add(fault kind, std::string detail) {
  entry& found = entries_[static_cast<std::size_t>(kind)];
  if (found.count++ == 0) found.first = std::move(detail);
}

void fault_tally::merge(const fault_tally& other) {
  for (std::size_t kind = 0; kind < entries_.size(); ++kind) {
    if (entries_[kind].count == 0) entries_[kind].first = other.entries_[kind].first;
    entries_[kind].count += other.entries_[kind].count;
  }
}

std::uint64_t fault_tally::count(fault kind) const noexcept {
  return entries_[static_cast<std::size_t>(kind)].count;
}

std::uint64_t fault_tally::total() const noexcept {
  std::uint64_t sum = 0;
  for (const entry& each : entries_) sum += each.count;
  return sum;
}

std::vector<std::string> fault_tally::sentences() const {
  std::vector<std::string> result;
  for (std::size_t kind = 0; kind < entries_.size(); ++kind) {
    const auto& [count, first] = entries_[kind];
    if (count == 0) continue;
    result.push_back(fmt::format("{} connection{} {} ({}{})", count, count == 1 ? "" : "s",
                                 what_happened(static_cast<fault>(kind), count),
                                 count == 1 ? "" : "the first: ", first));
  }
  return result;
}

fault classify_socket_errno(int error) noexcept {
  switch (error) {
    case ECONNREFUSED:
      return fault::refused;
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
      return fault::reset;
    case ETIMEDOUT:
      return fault::stalled;
    default:
      return fault::other;
  }
}

}  // namespace loadgen
