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

// One client of each kind: it says nothing, it behaves well, it leaves its echo unread, it resets.
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

struct holdings {
  std::size_t fds;
  std::size_t threads;
  friend bool operator==(const holdings&, const holdings&) = default;
};

holdings holdings_of(const server_process& server) {
  return {server.open_fd_count(), server.thread_count()};
}

// A server lets go of a connection some time after its client has: wait until nothing changes.
holdings settled_holdings(const server_process& server) {
  constexpr int same_readings = 30;
  holdings now = holdings_of(server);
  int same = 0;
  [[maybe_unused]] const bool settled = eventually(milliseconds{4000}, [&] {
    const holdings before = std::exchange(now, holdings_of(server));
    same = before == now ? same + 1 : 0;
    return same == same_readings;
  });
  return now;
}

constexpr const char* usual_leak =
    "a path that ends a connection without close(): shutdown() alone keeps the descriptor. Look at "
    "the reset, at the empty visit, at the echo nobody read";

// In groups, so that how many connections there are at a time does not depend on the machine.
void visit_many(const server_process& server, unsigned count, const holdings& at_rest) {
  constexpr unsigned group = 50;
  for (unsigned i = 0; i < count; ++i) {
    visit(server.port(), i);
    if (i % group != 0) continue;
    holdings now{};
    const bool let_go = eventually(milliseconds{4000}, [&] {
      now = holdings_of(server);
      return now.fds < at_rest.fds + group && now.threads < at_rest.threads + group;
    });
    UNSCOPED_INFO(usual_leak << "; all clients have left, and it holds " << now.fds
                             << " descriptors and " << now.threads << " threads; at rest "
                             << at_rest.fds << " and " << at_rest.threads);
    REQUIRE(let_go);
  }
}

// Memory that a server keeps for good (arenas, tables, cached stacks) has its size after this.
void grow_to_full_size(const server_process& server, const holdings& at_rest) {
  auto together = connect_many(server.port(), 200);
  const auto messages = own_messages(together.size(), 700);
  REQUIRE(compare_all(echo_all(together, messages), messages) == identical);
  together.clear();
  visit_many(server, 300, at_rest);
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

  // Collects until no further client has been served for a while.
  void collect_all_it_serves() {
    while (happens_within(milliseconds{500}, [this] { return collect(); })) continue;
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
  const holdings at_rest = settled_holdings(server);
  grow_to_full_size(server, at_rest);

  // 512 bytes a connection: less than any buffer that is forgotten, more than an allocator's noise.
  constexpr std::size_t growth_bytes_max = 2000 * 512;
  std::size_t growth_bytes = growth_bytes_max;
  // Noise comes once, a leak comes every time.
  for (int round = 0; round < 3 && growth_bytes >= growth_bytes_max; ++round) {
    const std::size_t bytes_before = server.resident_bytes();
    visit_many(server, 2000, at_rest);
    // A server that gets no CPU looks as if it had settled.
    holdings now{};
    (void)eventually(milliseconds{4000}, [&] {
      now = settled_holdings(server);
      return now.fds == at_rest.fds;
    });
    UNSCOPED_INFO(usual_leak);
    REQUIRE(now.fds == at_rest.fds);
    growth_bytes = std::max(server.resident_bytes(), bytes_before) - bytes_before;
    if (is_sanitized()) break;  // LeakSanitizer counts for us, at the stop below
  }
  UNSCOPED_INFO("memory grows with the number of connections served: something is not given back");
  if (!is_sanitized()) CHECK(growth_bytes < growth_bytes_max);
  UNSCOPED_INFO("after a clean stop");
  CHECK(server.stop() == exited(0));
}

TEST_CASE("at the descriptor limit it serves those it accepted and does not spin") {
  const server_process server = start_contract_server({.fd_limit = fd_limit});
  crowd clients{server.port(), clients_at_limit};
  clients.collect_all_it_serves();
  UNSCOPED_INFO("accept() failed with EMFILE and the server gave up, on itself or on its clients");
  REQUIRE(clients.served.size() >= served_at_limit_min);
  UNSCOPED_INFO(
      "accept() fails with EMFILE at once, and the listener stays readable: a server that only "
      "tries again burns a CPU. Do not watch the listener until a connection has ended");
  CHECK(cpu_used_during(milliseconds{500}, server) < milliseconds{25});
  UNSCOPED_INFO("clients that got in are no longer served once the limit was reached");
  CHECK(clients.served.front().echo("still?") == "still?");
}

TEST_CASE("clients that waited at the descriptor limit are served when others leave") {
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
      "the server stopped watching the listener at EMFILE, and nothing "
      "makes it look again when a connection ends; served: "
      << served << " of " << clients_at_limit);
  CHECK(all_served);
  UNSCOPED_INFO("the server must accept as before");
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
