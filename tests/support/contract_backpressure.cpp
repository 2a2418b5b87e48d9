// SPDX-License-Identifier: MIT
// The echo contract: a client that reads slowly or not at all does not hold up other clients.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <thread>

#include "bytes.hpp"
#include "contract_server.hpp"
#include "socket_steps.hpp"

using namespace course_test;

namespace {

// Reads the echo of `message` a little at a time with pauses in between, and sends the rest of it
// when there is room.
std::string read_slowly(client& peer, std::string_view message, std::size_t sent_bytes) {
  constexpr std::size_t bite_bytes = 16 * 1024;
  time_limit limit{step_deadline};
  std::string reply;
  while (reply.size() < message.size()) {
    if (sent_bytes < message.size()) sent_bytes += peer.send_some(message.substr(sent_bytes));
    const std::string bite = peer.recv_some(std::min(bite_bytes, message.size() - reply.size()));
    if (!bite.empty()) limit = time_limit{step_deadline};
    if (limit.left() == milliseconds{0}) {
      throw client_error{"sent " + of_bytes(sent_bytes, message.size()) +
                         ", then nothing came for " + limit.describe() + ": " +
                         compare_bytes(reply, message)};
    }
    reply += bite;
    std::this_thread::sleep_for(milliseconds{1});
  }
  return reply;
}

}  // namespace

TEST_CASE("a slow reader gets all of eight MiB in order") {
  const std::string message = pattern(0, 8 * 1024 * 1024);
  const server_process server = start_contract_server();
  client slow{server.port(), small_buffers};
  const std::size_t sent_bytes = send_until_stalled(slow, message.size());
  UNSCOPED_INFO(
      "missing bytes mean that a send took only a part (a short send) and the rest was dropped, or "
      "went out after later bytes. A hang means that the server does not ask when it may write "
      "again, or does not go back to reading");
  CHECK(compare_bytes(read_slowly(slow, message, sent_bytes), message) == identical);
}

TEST_CASE("a reader that stops does not hold up the others") {
  const server_process server = start_contract_server();
  client stalled{server.port(), small_buffers};
  const std::size_t sent_bytes = send_until_stalled(stalled, 2 * kernel_buffer_bytes_max());
  auto others = connect_many(server.port(), 10);
  const auto messages = own_messages(others.size(), 64 * 1024);
  UNSCOPED_INFO("the server waits in a send for the one client that does not read");
  CHECK(compare_all(echo_all(others, messages), messages) == identical);
  UNSCOPED_INFO("the client that had stopped reads again, and must get all of its echo");
  CHECK(compare_bytes(stalled.recv_exactly(sent_bytes), pattern(0, sent_bytes)) == identical);
}

TEST_CASE("it stops reading from a client that does not read") {
  constexpr std::size_t own_bytes_max = 4 * 1024 * 1024;
  server_process server = start_contract_server();
  client stalled{server.port(), small_buffers};
  stalled.send_all("x");
  REQUIRE(stalled.recv_exactly(1) == "x");
  const std::size_t before = server.resident_bytes();

  const std::size_t holds_max = kernel_buffer_bytes_max() + own_bytes_max;
  const std::size_t taken = send_until_stalled(stalled, 2 * holds_max);
  UNSCOPED_INFO(
      "more than the kernel's buffers hold has gone into the server's own memory: while "
      "an echo waits to be sent, read no more from that client");
  CHECK(taken < holds_max);
  if (is_sanitized()) return;  // its shadow memory grows with every byte the server touches
  UNSCOPED_INFO("the memory of the server grew by more than 4 MiB for one client that never reads");
  CHECK(server.resident_bytes() < before + own_bytes_max);
}

TEST_CASE("a reader that has stopped costs no CPU") {
  const server_process server = start_contract_server();
  client stalled{server.port(), small_buffers};
  REQUIRE(send_until_stalled(stalled, 2 * kernel_buffer_bytes_max()) > 0);
  UNSCOPED_INFO(
      "it polls for readability that it does not use, or for writability it cannot use: "
      "ask for EPOLLOUT only while something waits, for EPOLLIN only while it may read");
  CHECK(cpu_used_during(milliseconds{500}, server) < milliseconds{25});
}
