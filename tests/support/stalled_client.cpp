// SPDX-License-Identifier: MIT
#include "stalled_client.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "bytes.hpp"
#include "eventually.hpp"

namespace course_test {
namespace {

// The last of the three numbers in a file such as tcp_rmem: the most that autotuning allows.
std::size_t largest_in(const char* path) {
  std::size_t smallest = 0;
  std::size_t usual = 0;
  std::size_t largest = 0;
  std::ifstream{path} >> smallest >> usual >> largest;
  return largest;
}

}  // namespace

std::size_t kernel_buffer_bytes_max() {
  return largest_in("/proc/sys/net/ipv4/tcp_rmem") + largest_in("/proc/sys/net/ipv4/tcp_wmem") +
         static_cast<std::size_t>(
             2 * (small_buffers.receive_buffer_bytes + small_buffers.send_buffer_bytes));
}

std::size_t send_until_stalled(client& peer, std::size_t bytes_max, milliseconds a_while) {
  constexpr std::size_t piece_bytes = 256 * 1024;
  std::size_t sent_bytes = 0;
  std::size_t piece_start = 0;
  std::string piece = pattern(0, piece_bytes);
  auto last_progress = std::chrono::steady_clock::now();
  while (sent_bytes < bytes_max) {
    const std::size_t taken =
        peer.send_some(std::string_view{piece}.substr(sent_bytes - piece_start));
    const auto now = std::chrono::steady_clock::now();
    if (taken > 0) last_progress = now;
    if (taken == 0 && now - last_progress > a_while) return sent_bytes;
    if (taken == 0) std::this_thread::sleep_for(milliseconds{1});
    sent_bytes += taken;
    if (sent_bytes < piece_start + piece_bytes) continue;
    piece_start = sent_bytes;
    piece = pattern(0, piece_bytes, piece_start);
  }
  return sent_bytes;
}

std::size_t send_until_unread(client& peer, std::size_t bytes_max) {
  constexpr std::size_t piece_bytes = 16 * 1024;
  std::size_t widest = peer.send_window_bytes();
  const auto keeps_up = [&] {
    const std::size_t window = peer.send_window_bytes();
    widest = std::max(widest, window);
    // Not more than half: a kernel announces a growing window only when it has doubled.
    return window > widest / 2 + peer.unacknowledged_bytes();
  };
  std::size_t sent_bytes = 0;
  while (sent_bytes < bytes_max && happens_within(stall_ms, keeps_up)) {
    peer.send_all(pattern(0, piece_bytes, sent_bytes));
    sent_bytes += piece_bytes;
  }
  return sent_bytes;
}

}  // namespace course_test
