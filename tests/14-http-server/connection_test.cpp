// SPDX-License-Identifier: MIT
// Order, batches and ends of a connection, seen from its client.
#include <catch2/catch_test_macros.hpp>
#include <string>

#include "bytes.hpp"
#include "site_server.hpp"

using namespace course_test;

namespace {

const std::vector<std::string> no_cache{"--cache-bytes-max", "0"};

}  // namespace

TEST_CASE("14.2 an answer that has to wait is not overtaken", "[14.2]") {
  const site_server server{no_cache};
  client peer = server.connect();
  peer.send_all(site_server::request("/-/counters") + site_server::request("/large.bin") +
                site_server::request("/none") + site_server::last_request("/-/counters"));
  UNSCOPED_INFO("the answers before one that waits for a file are sent before it");
  CHECK(body_of(recv_answer(peer)).starts_with("connections"));
  UNSCOPED_INFO("the request was lost: its head is what next() has taken from the front of `rest`");
  CHECK(compare_bytes(body_of(recv_answer(peer)), site_folder::large()) == identical);
  CHECK(status_of(recv_answer(peer)) == 404);
  CHECK(body_of(recv_answer(peer)).starts_with("connections"));
}

TEST_CASE("14.2 more answers than fit into a block come all, and in order", "[14.2]") {
  // So that hundreds of requests come in one piece.
  const site_server server{{"--cache-bytes-max", "0", "--buffer-size", "65536"}};
  client peer = server.connect();
  constexpr int pairs = 400;  // two answers of 500 and 150 bytes each; a block has 65,536
  std::string all;
  for (int i = 0; i < pairs; ++i) {
    all += site_server::request("/-/counters") +
           "POST /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
  }
  peer.send_all(all);
  UNSCOPED_INFO("a block without room has to be sent first: needs::room");
  int right = 0;
  for (int i = 0; i < pairs; ++i) {
    right += status_of(recv_answer(peer)) == 200 ? 1 : 0;
    right += status_of(recv_answer(peer)) == 405 ? 1 : 0;
  }
  CHECK(right == 2 * pairs);
}

TEST_CASE("14.2 a client that is refused can read why, though it goes on sending", "[14.2]") {
  const site_server server{no_cache};
  client peer = server.connect();
  peer.send_all("POST /-/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n");
  const std::string part = pattern(1, 300'000);
  (void)peer.send_some(part);
  (void)peer.send_some(part);
  UNSCOPED_INFO("closed with bytes unread, which sends a reset, and the answer is gone");
  CHECK(status_of(peer.recv_until_eof()) == 413);
}

TEST_CASE("14.2 what came before a half-close is answered", "[14.2]") {
  const site_server server{no_cache};
  client peer = server.connect();
  peer.send_all(site_server::request("/none") + site_server::request("/-/counters"));
  peer.shutdown_write();
  UNSCOPED_INFO("the client will send no more, but it still reads");
  const std::string all = peer.recv_until_eof();
  CHECK(all.find("404 Not Found\n") != std::string::npos);
  CHECK(all.find("\nrequests ") != std::string::npos);
}

TEST_CASE("14.2 a request's head is read up to its limit, and not a byte further", "[14.2]") {
  const site_server server{{"--cache-bytes-max", "0", "--head-bytes-max", "512"}};
  const std::string begin = "GET /none HTTP/1.1\r\nHost: a\r\nX: ";
  const auto head_of = [&](std::size_t bytes) {
    return begin + std::string(bytes - begin.size() - 4, 'x') + "\r\n\r\n";
  };
  client peer = server.connect();
  peer.send_all(head_of(512));
  UNSCOPED_INFO("512 of 512 bytes");
  CHECK(status_of(recv_answer(peer)) == 404);
  peer.send_all(head_of(513));
  UNSCOPED_INFO("one byte too many: a client could fill our memory with one head");
  CHECK(status_of(peer.recv_until_eof()) == 431);
}

TEST_CASE("14.2 a request's body is read up to its limit, and not a byte further", "[14.2]") {
  const site_server server{{"--cache-bytes-max", "0", "--body-bytes-max", "70000"}};
  const auto post = [](std::size_t bytes) {
    return "POST /-/echo HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(bytes) +
           "\r\n\r\n" + pattern(3, bytes);
  };
  client peer = server.connect();
  peer.send_all(post(70000));
  CHECK(compare_bytes(body_of(recv_answer(peer)), pattern(3, 70000)) == identical);
  peer.send_all(post(70001));
  CHECK(status_of(peer.recv_until_eof()) == 413);
}
