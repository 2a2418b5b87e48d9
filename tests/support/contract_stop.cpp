// SPDX-License-Identifier: MIT
// The echo contract: a server stops when asked, with status 0, and echoes bytes that have arrived.
#include <catch2/catch_test_macros.hpp>

#include "bytes.hpp"
#include "contract_server.hpp"
#include "eventually.hpp"
#include "process_counts.hpp"

using namespace course_test;

namespace {

std::vector<client> connect_and_echo(const server_process& server, std::size_t count) {
  auto clients = connect_many(server.port(), count);
  const auto messages = own_messages(count, 100);
  REQUIRE(compare_all(echo_all(clients, messages), messages) == identical);
  return clients;
}

// Its first byte comes back, so that it is the server's client and waits in no backlog: a server
// that has not accepted it may well leave without it.
client connect_and_stall(std::uint16_t port) {
  client stalled{port, small_buffers};
  REQUIRE(stalled.echo("x") == "x");
  REQUIRE(send_until_stalled(stalled, 2 * kernel_buffer_bytes_max()) > 0);
  return stalled;
}

void check_stops_with_clients(int signal) {
  server_process server = start_contract_server();
  auto clients = connect_and_echo(server, 20);
  UNSCOPED_INFO(
      "still running: a thread blocks in accept() or recv() and nothing wakes it, or the loop "
      "waits for clients that have no reason to leave. Killed: the signal has no handler");
  CHECK(server.stop(signal) == exited(0));
  UNSCOPED_INFO("the clients of a server that stops see the connection end");
  CHECK(clients.front().wait_for_end() == ending::eof);
}

}  // namespace

TEST_CASE("SIGTERM ends it with status 0 while clients are connected") {
  check_stops_with_clients(SIGTERM);
}

TEST_CASE("SIGINT ends it with status 0 while clients are connected") {
  check_stops_with_clients(SIGINT);
}

TEST_CASE("it goes on after Ctrl-Z and fg stopped and continued it") {
  server_process server = start_contract_server();
  auto clients = connect_and_echo(server, 1);
  for (int i = 0; i < 3; ++i) {  // twice in a row, too: a wait that submits may hide its EINTR
    (void)eventually(milliseconds{500}, [&] { return process_state(server.pid()) == 'S'; });
    UNSCOPED_INFO("a wait ended with EINTR: nothing is wrong, wait again");
    REQUIRE(server.alive());
    server.send_signal(SIGSTOP);
    REQUIRE(eventually(step_deadline, [&] { return process_state(server.pid()) == 'T'; }));
    server.send_signal(SIGCONT);
  }
  UNSCOPED_INFO("a wait ended with EINTR, and the loop has ended or goes round without waiting");
  CHECK(clients.front().echo("still there?") == "still there?");
}

TEST_CASE("bytes that arrived before SIGTERM are still echoed") {
  server_process server = start_contract_server();
  auto clients = connect_and_echo(server, 8);
  // More than one recv() takes, and less than a socket's receive buffer holds from the start.
  const auto messages = own_messages(clients.size(), 48 * 1024);
  server.send_signal(SIGSTOP);  // so that the bytes are there, unread, when SIGTERM comes
  for (std::size_t i = 0; i < clients.size(); ++i) clients[i].send_all(messages[i]);
  for (const client& each : clients) {
    REQUIRE(eventually(step_deadline, [&] { return each.unacknowledged_bytes() == 0; }));
  }
  server.send_signal(SIGTERM);
  server.send_signal(SIGCONT);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    UNSCOPED_INFO("the server closed its connections before it had read what they held");
    REQUIRE(compare_bytes(clients[i].recv_until_eof(), messages[i]) == identical);
  }
  UNSCOPED_INFO("the server has to end then");
  CHECK(server.wait_for_exit(server_process::stop_deadline) == exited(0));
}

TEST_CASE("a client that never reads cannot keep it from stopping") {
  server_process server = start_contract_server();
  client stalled = connect_and_stall(server.port());
  UNSCOPED_INFO(
      "a server that finishes requests in flight needs a time limit: after it, close the "
      "connections that are left");
  CHECK(server.stop(SIGTERM, milliseconds{5000}) == exited(0));
}

TEST_CASE("a second SIGTERM ends it at once") {
  // On a busy machine the grace period after the first signal may be over before the second: again.
  exit_status ended = exited(0);
  for (int tries = 0; tries < 5 && ended == exited(0); ++tries) {
    server_process server = start_contract_server();
    client stalled = connect_and_stall(server.port());
    server.send_signal(SIGTERM);
    // Two pending signals of one kind are one signal: the first must have reached the server.
    const auto delivered = [&] {
      return !server.alive() || !signal_pending(server.pid(), SIGTERM);
    };
    REQUIRE(eventually(server_process::stop_deadline, delivered));
    if (!server.alive()) return;  // the first signal was enough
    ended = server.stop(SIGTERM);
  }
  UNSCOPED_INFO(
      "the second signal only says again what the first said; an impatient user needs it "
      "to end the process: restore the default action after the first");
  CHECK(ended == killed_by(SIGTERM));
}
