// SPDX-License-Identifier: MIT
// Order, batches and ends of a connection, seen from its client.
#include <sys/socket.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "buffer_pool.hpp"
#include "buffer_ring.hpp"
#include "bytes.hpp"
#include "cancel_source.hpp"
#include "counters.hpp"
#include "deadline.hpp"
#include "eventually.hpp"
#include "http_connection.hpp"
#include "http_options.hpp"
#include "http_site.hpp"
#include "io_context.hpp"
#include "operations.hpp"
#include "send_blocks.hpp"
#include "site_root.hpp"
#include "site_server.hpp"
#include "socket_pair.hpp"
#include "task.hpp"
#include "when_any.hpp"

using namespace course_test;
using namespace std::chrono_literals;
using uring::task;
using uring::http::coarse_now;
using uring::http::limit_clock;

namespace {

// A connection inside the test, which decides what time its limits see.
class connection_by_hand {
 public:
  static constexpr std::chrono::milliseconds limit = 1h;

  connection_by_hand() = default;
  connection_by_hand(connection_by_hand&&) = delete;

  // Sends the end of a head with the beginning of the next, twice, and lets the first head's time
  // go by. Returns the status of the three answers.
  [[nodiscard]] std::vector<int> send_heads_that_overlap() {
    uring::http::http_connection server{site_, over_, sockets_.theirs.get()};
    context_.run(uring::when_any(over_, server.run(), overlap()));
    return seen_;
  }

  // Whether the connection has taken a block before its client has sent anything. The block that
  // was returned last is taken first: if ours is gone, the connection has it.
  [[nodiscard]] bool takes_a_block_for_silence() {
    const char* const last = next_block();
    uring::http::http_connection server{site_, over_, sockets_.theirs.get()};
    bool is_taken = false;
    context_.run(uring::when_any(over_, server.run(), look_for(last, is_taken)));
    return is_taken;
  }

 private:
  static uring::http::http_options with_limits() {
    uring::http::http_options chosen;
    chosen.lengths.fill(limit);
    return chosen;
  }

  [[nodiscard]] const char* next_block() {
    uring::http::send_block taken{site_.blocks};
    return taken.room().data();
  }

  // Starts when the connection waits, because when_any() starts it second.
  task<> look_for(const char* block, bool& is_taken) {
    is_taken = next_block() != block;
    co_return;
  }

  task<> overlap() {
    const std::string request = site_server::request("/-/counters");
    const std::string begin = request.substr(0, 10);
    const std::string end = request.substr(10);
    const std::string echo = "POST /-/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    co_await exchange(request + echo.substr(0, 10));  // now the second head's limit runs
    const limit_clock::time_point before = coarse_now();
    (void)eventually(step_deadline, [&] { return coarse_now() > before; });  // the clock ticks
    co_await exchange(echo.substr(10) + begin);  // an answer that is not written at once
    site_.limits.sweep(before + limit);
    co_await exchange(end);
  }

  task<> exchange(std::string_view bytes) {
    (void)::send(sockets_.ours.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    std::array<char, 4096> room{};
    const uring::io_result got = co_await uring::with_deadline(
        uring::recv_op(over_, sockets_.ours.get(), std::as_writable_bytes(std::span{room})),
        step_deadline);
    seen_.push_back(status_of(std::string_view{room.data(), got ? got.count() : 0}));
  }

  site_folder folder_;
  uring::http::site_root root_{folder_.root().string()};
  uring::http::http_options options_ = with_limits();
  std::vector<uring::http::counters> counters_ = std::vector<uring::http::counters>(1);
  uring::io_context context_;
  uring::buffer_ring supply_{context_, 0, 4};
  uring::buffer_pool pool_{context_, supply_, {.count = 4}};
  uring::http::http_site site_{root_, options_, pool_, counters_, 0};
  uring::cancel_source over_{context_};
  socket_pair sockets_ = unix_pair();
  std::vector<int> seen_;
};

}  // namespace

TEST_CASE("14.2 a head has all of its time, though it begins behind another", "[14.2]") {
  connection_by_hand here;
  const std::vector<int> seen = here.send_heads_that_overlap();
  UNSCOPED_INFO(
      "the limit of the head before goes on, up to a 408: link_.limit.stop() ends it when the head "
      "has come, whatever answers it");
  CHECK(seen == std::vector{200, 200, 200});
}

TEST_CASE("14.2 a connection takes no block before it has something to send", "[14.2]") {
  connection_by_hand here;
  UNSCOPED_INFO(
      "each silent client holds 64 KiB: room() takes a block, but room_bytes() only counts");
  CHECK_FALSE(here.takes_a_block_for_silence());
}

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

TEST_CASE("14.2 a last answer that has waited for the disk is the last as well", "[14.2]") {
  const site_server server{no_cache};
  client peer = server.connect();
  peer.send_all(site_server::last_request("/hello.txt") + site_server::last_request("/-/counters"));
  CHECK(body_of(recv_answer(peer)) == "hello world\n");
  UNSCOPED_INFO("answered after a last answer: ask answers_.is_over() before each request");
  CHECK(peer.recv_until_eof().empty());
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
