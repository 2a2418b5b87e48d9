// SPDX-License-Identifier: MIT
// Clients that do their worst, and files that change while they are sent.
#include <signal.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <string>

#include "bytes.hpp"
#include "eventually.hpp"
#include "process_counts.hpp"
#include "site_server.hpp"
#include "stalled_client.hpp"

using namespace course_test;

namespace {

// No time limit of the server comes to the aid of a test.
const std::vector<std::string> no_limits{
    "--head-timeout-ms", "3600000", "--body-timeout-ms",  "3600000",
    "--idle-timeout-ms", "3600000", "--write-timeout-ms", "3600000"};

// A client that has the beginning of a file that no kernel buffers can hold.
client in_the_middle_of(const site_server& server, const std::string& huge) {
  server.folder.write("huge.bin", huge);
  client peer = server.connect(small_buffers);
  peer.send_all(site_server::last_request("/huge.bin"));
  CHECK(status_of(recv_head(peer)) == 200);
  return peer;
}

}  // namespace

TEST_CASE("14 a reset behind half a request is noticed, though its bytes came with it", "[14]") {
  site_server server{no_limits};
  const std::size_t fds = server.process.open_fd_count();
  server.process.send_signal(SIGSTOP);  // so that bytes and reset are there when it looks
  for (int i = 0; i < 10; ++i) {
    client peer = server.connect();
    peer.send_all(i % 2 == 0 ? "GET / HT"
                             : "POST /-/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab");
    peer.reset();
  }
  server.process.send_signal(SIGCONT);
  UNSCOPED_INFO("the recv has brought the bytes, and will never tell of the reset: has_reset()");
  CHECK(eventually(2 * step_deadline, [&] {
    return server.counter("connections") > 10 && server.process.open_fd_count() <= fds;
  }));
}

TEST_CASE("14 a head without an end costs no memory, and is refused", "[14]") {
  const site_server server{no_limits};
  const std::size_t before = server.process.resident_bytes();
  client flood = server.connect();
  flood.send_all("GET / HTTP/1.1\r\nX: ");
  const std::string part(64 * 1024, 'x');
  std::size_t sent = 0;
  for (int i = 0; i < 1600 && sent < 16 * 1024 * 1024; ++i) {
    try {
      sent += flood.send_some(part);
    } catch (const client_error&) {
      break;  // refused, and closed
    }
  }
  UNSCOPED_INFO("the bytes of a head are collected without a limit");
  CHECK(server.process.resident_bytes() < before + 4 * 1024 * 1024);
  CHECK(body_of(server.get("/hello.txt")) == "hello world\n");
}

TEST_CASE("14 a file that shrinks while it is sent ends in a reset, and not as if whole", "[14]") {
  const site_server server{no_limits};
  client peer = in_the_middle_of(server, pattern(5, 2 * kernel_buffer_bytes_max()));
  std::filesystem::resize_file(server.folder.root() / "huge.bin", 1000);
  UNSCOPED_INFO("its end cannot be sent any more: the client has to notice");
  CHECK(peer.wait_for_end() == ending::reset);
  CHECK(status_of(server.get("/hello.txt")) == 200);
}

TEST_CASE("14 a file that grows, or loses its name, is sent as its head has said", "[14]") {
  const site_server server{no_limits};
  const std::string huge = pattern(5, 2 * kernel_buffer_bytes_max());
  client peer = in_the_middle_of(server, huge);
  std::filesystem::resize_file(server.folder.root() / "huge.bin", huge.size() + 100'000);
  std::filesystem::rename(server.folder.root() / "digits.txt", server.folder.root() / "huge.bin");
  UNSCOPED_INFO("Content-Length was said, and the descriptor is still that of the old file");
  CHECK(compare_bytes(peer.recv_until_eof(4 * step_deadline), huge) == identical);
  CHECK(body_of(server.get("/huge.bin")) == "0123456789");
}

TEST_CASE("14 without its root the server goes on, and has nothing", "[14]") {
  const site_server server{{"--fresh-ms", "0"}};
  CHECK(status_of(server.get("/hello.txt")) == 200);
  std::filesystem::remove_all(server.folder.root());
  CHECK(status_of(server.get("/hello.txt")) == 404);
  CHECK(status_of(server.get("/-/counters")) == 200);
}

TEST_CASE("14 a folder's index that is no file is refused, and makes nobody wait", "[14]") {
  const site_server server;
  const std::filesystem::path root = server.folder.root();
  std::filesystem::create_directories(root / "of-a-fifo");
  std::filesystem::create_directories(root / "of-a-folder" / "index.html");
  std::filesystem::rename(root / "fifo", root / "of-a-fifo" / "index.html");
  CHECK(status_of(server.get("/of-a-fifo/")) == 403);
  UNSCOPED_INFO("a redirect from a path with a slash at its end leads to the next one, forever");
  CHECK(status_of(server.get("/of-a-folder/")) == 404);
}

TEST_CASE("14 what does not fit into a block comes from memory all the same", "[14]") {
  const site_server server;
  constexpr int times = 50;
  const std::string text = pattern(4, 30'000);  // two of them fill a block
  server.folder.write("half.bin", text);
  CHECK(body_of(server.get("/half.bin")) == text);
  client peer = server.connect();
  std::string all;
  for (int i = 0; i < times; ++i) all += site_server::request("/half.bin");
  peer.send_all(all);
  int right = 0;
  for (int i = 0; i < times; ++i) right += body_of(recv_answer(peer)) == text ? 1 : 0;
  CHECK(right == times);
  UNSCOPED_INFO("the disk was asked for what is in memory, because a block was full");
  CHECK(server.counter("cache_loads") < times / 4);
}
