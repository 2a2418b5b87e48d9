// SPDX-License-Identifier: MIT
// The echo contract: many clients, few descriptors, none at all.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <utility>

#include "bytes.hpp"
#include "contract_server.hpp"
#include "eventually.hpp"

using namespace course_test;

namespace {

constexpr unsigned fd_limit = 32;
constexpr std::size_t clients_at_limit = 100;
// A server needs a few descriptors for itself; the other half of them must go to clients.
constexpr std::size_t served_at_limit_min = fd_limit / 2;

// One visit of each kind: says nothing, is polite, leaves its echo unread, resets.
void visit(std::uint16_t port, unsigned number) {
  const std::string message = pattern(number, 700);
  client visitor{port};
  if (number % 4 == 0) return;
  if (number % 4 == 1) {
    REQUIRE(compare_bytes(visitor.echo(message), message) == identical);
    return;
  }
  visitor.send_all(message);
  if (number % 4 == 3) visitor.reset();
}

void visit_many(std::uint16_t port, unsigned count) {
  for (unsigned i = 0; i < count; ++i) visit(port, i);
}

// A server closes a connection some time after its client has: wait until nothing changes.
std::size_t settled_fd_count(const server_process& server) {
  constexpr int same_readings = 30;
  std::size_t count = server.open_fd_count();
  int same = 0;
  [[maybe_unused]] const bool settled = eventually(milliseconds{3000}, [&] {
    const std::size_t before = std::exchange(count, server.open_fd_count());
    same = before == count ? same + 1 : 0;
    return same == same_readings;
  });
  return count;
}

// Clients that have sent one message each and take their echo when it comes.
struct crowd {
  std::vector<client> waiting;
  std::vector<client> served = {};

  crowd(std::uint16_t port, std::size_t count) : waiting{connect_many(port, count)} {
    for (client& each : waiting) each.send_all("x");
  }

  // Moves those whose echo has come; true if there were any.
  bool collect() {
    const auto still_waiting = [](client& each) { return each.recv_some(1).empty(); };
    const auto done = std::partition(waiting.begin(), waiting.end(), still_waiting);
    const bool some = done != waiting.end();
    std::move(done, waiting.end(), std::back_inserter(served));
    waiting.erase(done, waiting.end());
    return some;
  }

  // Until nobody new has been served for a while.
  void collect_all_it_serves() {
    while (eventually(milliseconds{500}, [this] { return collect(); })) continue;
  }
};

}  // namespace

TEST_CASE("a thousand clients at once are all served") {
  const server_process server = start_contract_server();
  auto clients = connect_many(server.port(), 1000);
  const auto messages = own_messages(clients.size(), 512);
  for (int round = 0; round < 2; ++round) {
    UNSCOPED_INFO(
        "a fixed table of connections, select()'s 1,024, or a listen backlog that "
        "overflowed while the server was busy");
    REQUIRE(compare_all(echo_all(clients, messages, milliseconds{8000}), messages) == identical);
  }
}

TEST_CASE("two thousand connections leave no descriptor and no memory behind") {
  server_process server = start_contract_server();
  visit(server.port(), 1);
  const std::size_t fds_before = settled_fd_count(server);
  // What a server keeps for good (arenas, tables, cached stacks) has its size after this.
  visit_many(server.port(), 500);
  const std::size_t bytes_before = server.resident_bytes();

  visit_many(server.port(), 2000);
  UNSCOPED_INFO(
      "a path that ends a connection without close(): shutdown() alone keeps the "
      "descriptor. Look at the reset, at the empty visit, at the echo nobody read");
  CHECK(settled_fd_count(server) == fds_before);

  // 512 bytes a connection: less than any buffer that is forgotten, more than the allocator's
  // noise.
  constexpr std::size_t growth_bytes_max = 2000 * 512;
  if (!sanitized) {
    UNSCOPED_INFO("memory grew with the number of connections served: what is not given back?");
    CHECK(server.resident_bytes() < bytes_before + growth_bytes_max);
  }
  UNSCOPED_INFO("after a clean stop, which is also when LeakSanitizer reports");
  CHECK(server.stop() == exited(0));
}

TEST_CASE("at the descriptor limit it serves those it accepted and does not spin") {
  const server_process server = start_contract_server({.fd_limit = fd_limit});
  crowd clients{server.port(), clients_at_limit};
  clients.collect_all_it_serves();
  UNSCOPED_INFO("accept() failed with EMFILE and the server gave up, on itself or on its clients");
  REQUIRE(clients.served.size() >= served_at_limit_min);
  UNSCOPED_INFO(
      "accept() fails with EMFILE at once, and the listener stays readable: who only tries again "
      "burns a CPU. Do not watch the listener until a connection has ended");
  CHECK(cpu_used_during(milliseconds{500}, server) < milliseconds{25});
  UNSCOPED_INFO("those who got in are no longer served once the limit was reached");
  CHECK(clients.served.front().echo("still?") == "still?");
}

TEST_CASE("those who waited at the descriptor limit are served when others leave") {
  const server_process server = start_contract_server({.fd_limit = fd_limit});
  crowd clients{server.port(), clients_at_limit};
  std::size_t served = 0;
  const bool all_served = eventually(milliseconds{10000}, [&] {
    clients.collect();
    served += clients.served.size();
    clients.served.clear();  // they leave
    return clients.waiting.empty();
  });
  UNSCOPED_INFO(
      "the server went deaf: it stopped watching the listener at EMFILE, and nothing "
      "makes it look again when a connection ends; served: "
      << served << " of " << clients_at_limit);
  CHECK(all_served);
  UNSCOPED_INFO("and it accepts as before");
  check_still_serves(server);
}

TEST_CASE("idle clients cost no CPU") {
  const server_process server = start_contract_server();
  auto clients = connect_many(server.port(), 10);
  const auto messages = own_messages(clients.size(), 1);
  REQUIRE(compare_all(echo_all(clients, messages), messages) == identical);
  UNSCOPED_INFO(
      "a loop that polls: a timeout of 0, a non-blocking call tried again and again, or "
      "write interest (EPOLLOUT) left on, which is always true");
  CHECK(cpu_used_during(milliseconds{1000}, server) <= milliseconds{10});
}
