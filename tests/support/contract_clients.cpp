// SPDX-License-Identifier: MIT
// The echo contract: nothing a client does stops the server or hurts another client.
#include <catch2/catch_test_macros.hpp>

#include "bytes.hpp"
#include "contract_server.hpp"

using namespace course_test;

TEST_CASE("bytes that arrived before a half-close are echoed before EOF") {
  const std::string message = pattern(1, 64 * 1024);
  const server_process server = start_contract_server();
  client peer{server.port()};
  peer.send_all(message);
  peer.shutdown_write();
  UNSCOPED_INFO(
      "recv() returned 0, or epoll said RDHUP: the client will not send more, but it still reads. "
      "Echo what is left, then close");
  CHECK(compare_bytes(peer.recv_until_eof(), message) == identical);
}

TEST_CASE("an echo that is still waiting to be sent survives a half-close") {
  const server_process server = start_contract_server();
  client peer{server.port(), small_buffers};
  const std::size_t sent_bytes = send_until_unread(peer, 2 * kernel_buffer_bytes_max());
  peer.shutdown_write();  // arrives at once: there was room for more
  UNSCOPED_INFO("the FIN is reported again and again while the server waits for room to send");
  CHECK(cpu_used_during(milliseconds{200}, server) < milliseconds{10});
  UNSCOPED_INFO(
      "the server saw the FIN (EPOLLRDHUP, or a recv of 0) while it had bytes it could "
      "not send yet, and closed at once: those bytes are lost");
  CHECK(compare_bytes(peer.recv_until_eof(), pattern(0, sent_bytes)) == identical);
}

TEST_CASE("a reset in the middle of a message ends one connection only") {
  const server_process server = start_contract_server();
  client bystander{server.port()};
  for (int i = 0; i < 20; ++i) {
    client rude{server.port()};
    rude.send_all(pattern(1, 100 * 1000));
    rude.reset();
  }
  UNSCOPED_INFO("ECONNRESET and EPIPE end that connection; they are no reason to throw or exit");
  CHECK(bystander.echo("are you there?") == "are you there?");
  UNSCOPED_INFO("old clients are served, new ones are not: the accept loop ended with the reset");
  check_still_serves(server);
}

TEST_CASE("a reset while an echo waits to be sent ends one connection only") {
  server_process server = start_contract_server();
  for (int i = 0; i < 3; ++i) {
    client rude{server.port(), small_buffers};
    REQUIRE(send_until_stalled(rude, 2 * kernel_buffer_bytes_max()) > 0);
    rude.reset();
  }
  UNSCOPED_INFO("the blocked send fails with ECONNRESET or EPIPE: close, and forget what it held");
  check_still_serves(server);
  UNSCOPED_INFO(
      "EPOLLHUP and EPOLLERR cannot be masked: until the descriptor is closed they are "
      "reported again and again");
  CHECK(cpu_used_during(milliseconds{300}, server) < milliseconds{15});
}

TEST_CASE("a write to a client that has gone does not kill the server") {
  server_process server = start_contract_server();
  auto clients = connect_many(server.port(), 10);
  const auto greetings = own_messages(clients.size(), 1);
  REQUIRE(compare_all(echo_all(clients, greetings), greetings) == identical);
  server.send_signal(SIGSTOP);  // so that it finds bytes to echo, and nobody to send them to
  for (client& each : clients) {
    each.send_all(pattern(1, 32 * 1024));
    each.shutdown_write();  // a reset after a FIN: the next send() fails with EPIPE
    each.reset();
  }
  server.send_signal(SIGCONT);
  UNSCOPED_INFO("EPIPE comes with SIGPIPE, which ends the process: send with MSG_NOSIGNAL");
  check_still_serves(server);
  CHECK(server.alive());
}

TEST_CASE("clients that connect and leave at once are nothing special") {
  const server_process server = start_contract_server();
  for (int i = 0; i < 200; ++i) client{server.port()}.close();
  UNSCOPED_INFO("a first recv() of 0 bytes is a client that only wanted to see the port open");
  check_still_serves(server);
}

TEST_CASE("five hundred connections that are reset at once do not stop it") {
  const server_process server = start_contract_server();
  for (int i = 0; i < 500; ++i) client{server.port()}.reset();
  UNSCOPED_INFO(
      "accept() may fail with ECONNABORTED, and calls on the new socket with ENOTCONN: the next "
      "client is not to blame");
  check_still_serves(server);
}
