// SPDX-License-Identifier: MIT
#include "contract_server.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "bytes.hpp"
#include "eventually.hpp"

namespace course_test {
namespace {

constexpr milliseconds stall_ms{300};

// The last of the three numbers in a file such as tcp_rmem: the most that autotuning allows.
std::size_t largest_in(const char* path) {
  std::size_t smallest = 0;
  std::size_t usual = 0;
  std::size_t largest = 0;
  std::ifstream{path} >> smallest >> usual >> largest;
  return largest;
}

}  // namespace

std::filesystem::path contract_program() {
  const char* const path = std::getenv("COURSE_SERVER");
  if (path != nullptr) return path;
  throw std::runtime_error{
      "COURSE_SERVER does not say which server to test: run this through ctest -L contract, or set "
      "it to a program such as build/reference/bin/01-server"};
}

std::vector<std::string> contract_arguments() {
  const char* const text = std::getenv("COURSE_SERVER_ARGS");
  std::istringstream words{text != nullptr ? text : ""};
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) arguments.push_back(word);
  return arguments;
}

server_process start_contract_server(const child_options& options) {
  return server_process{contract_program(), contract_arguments(), options};
}

void check_still_serves(const server_process& server) {
  CHECK(client{server.port()}.echo("are you there?") == "are you there?");
}

std::vector<std::string> own_messages(std::size_t clients, std::size_t bytes) {
  std::vector<std::string> messages;
  messages.reserve(clients);
  for (unsigned i = 0; i < clients; ++i) messages.push_back(pattern(i, bytes));
  return messages;
}

std::size_t send_until_stalled(client& peer, std::size_t bytes_max) {
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
    if (taken == 0 && now - last_progress > stall_ms) return sent_bytes;
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
    // Not more than half: a kernel tells of a window that opens only once it has doubled.
    return window > widest / 2 + peer.unacknowledged_bytes();
  };
  std::size_t sent_bytes = 0;
  while (sent_bytes < bytes_max && eventually(stall_ms, keeps_up)) {
    peer.send_all(pattern(0, piece_bytes, sent_bytes));
    sent_bytes += piece_bytes;
  }
  return sent_bytes;
}

std::size_t kernel_buffer_bytes_max() {
  return largest_in("/proc/sys/net/ipv4/tcp_rmem") + largest_in("/proc/sys/net/ipv4/tcp_wmem") +
         static_cast<std::size_t>(
             2 * (small_buffers.receive_buffer_bytes + small_buffers.send_buffer_bytes));
}

milliseconds cpu_used_during(milliseconds wall, const server_process& server) {
  const auto before = server.cpu_time();
  std::this_thread::sleep_for(wall);  // the one place where time itself is what is measured
  return std::chrono::duration_cast<milliseconds>(server.cpu_time() - before);
}

}  // namespace course_test
