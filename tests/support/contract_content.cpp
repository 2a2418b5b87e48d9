// SPDX-License-Identifier: MIT
// The echo contract: every byte comes back, once, in order, to the client that sent it.
#include <catch2/catch_test_macros.hpp>

#include "bytes.hpp"
#include "contract_server.hpp"

using namespace course_test;

namespace {

constexpr std::size_t mib = 1024 * 1024;

}  // namespace

TEST_CASE("one byte comes back") {
  const server_process server = start_contract_server();
  client peer{server.port()};
  UNSCOPED_INFO("a server that waits for a full buffer or a line end never answers one byte");
  CHECK(peer.echo("x") == "x");
  UNSCOPED_INFO("the first echo came, the second did not: does the server loop until EOF?");
  CHECK(peer.echo("y") == "y");
}

TEST_CASE("every value of a byte comes back") {
  std::string message;
  for (int value = 0; value < 256; ++value) message += static_cast<char>(value);
  const server_process server = start_contract_server();
  client peer{server.port()};
  UNSCOPED_INFO("bytes are not text: strlen() ends at a zero, a line reader at a newline");
  CHECK(compare_bytes(peer.echo(message), message) == identical);
}

TEST_CASE("one MiB comes back unchanged") {
  const std::string message = pattern(1, mib);
  const server_process server = start_contract_server();
  client peer{server.port()};
  UNSCOPED_INFO("lost bytes in the middle: a send took less than it was given (a short send)");
  CHECK(compare_bytes(peer.echo(message), message) == identical);
}

TEST_CASE("a message larger than every buffer comes back whole") {
  const std::string message = pattern(1, 16 * mib);
  const server_process server = start_contract_server();
  client peer{server.port(), small_buffers};
  UNSCOPED_INFO(
      "a hang: the server waits for room to send and never looks again. Lost bytes: it dropped "
      "what a short send left over");
  CHECK(compare_bytes(peer.echo(message, milliseconds{12000}), message) == identical);
}

TEST_CASE("small messages sent without waiting come back in order") {
  constexpr std::size_t message_bytes = 13;
  const std::string all = pattern(1, 2000 * message_bytes);
  const server_process server = start_contract_server();
  client peer{server.port()};
  for (std::size_t at = 0; at < all.size(); at += message_bytes) {
    peer.send_all(std::string_view{all}.substr(at, message_bytes));
  }
  UNSCOPED_INFO("TCP has no messages: one recv may hold several, or a part of one");
  CHECK(compare_bytes(peer.recv_exactly(all.size()), all) == identical);
}

TEST_CASE("a message sent byte by byte comes back") {
  const std::string message = pattern(1, 512);
  const server_process server = start_contract_server();
  client peer{server.port()};
  peer.send_byte_by_byte(message);
  UNSCOPED_INFO("the same bytes in 512 segments: how often a recv returns must not matter");
  CHECK(compare_bytes(peer.recv_exactly(message.size()), message) == identical);
}

TEST_CASE("fifty clients at once each get their own bytes") {
  const server_process server = start_contract_server();
  auto clients = connect_many(server.port(), 50);
  const auto messages = own_messages(clients.size(), 64 * 1024);
  UNSCOPED_INFO(
      "a hang: the second client waits until the first one leaves. Foreign bytes: two connections "
      "share a buffer, or a descriptor number was reused while its old owner was still known");
  CHECK(compare_all(echo_all(clients, messages, milliseconds{10000}), messages) == identical);
}

TEST_CASE("clients that come and go leave the bytes of the others alone") {
  const server_process server = start_contract_server();
  auto staying = connect_many(server.port(), 8);
  const auto messages = own_messages(staying.size(), 32 * 1024);
  for (int round = 0; round < 4; ++round) {
    auto leaving = connect_many(server.port(), 32);
    for (std::size_t i = 0; i < leaving.size(); ++i) {
      leaving[i].send_all(pattern(90000, 1000));
      if (i % 2 == 0) leaving[i].reset();
    }
    leaving.clear();
    UNSCOPED_INFO(
        "c90000@ is a client that has left: its buffer was handed out twice, or the "
        "state of its descriptor number was not cleared");
    REQUIRE(compare_all(echo_all(staying, messages), messages) == identical);
  }
}
