// SPDX-License-Identifier: MIT
// The four peers: the same answers as 14's server, byte for byte, and what every server keeps.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bytes.hpp"
#include "client.hpp"
#include "eventually.hpp"
#include "golden.hpp"
#include "server_process.hpp"
#include "site_folder.hpp"
#include "site_server.hpp"
#include "stalled_client.hpp"

using namespace course_test;

namespace {

const std::vector<std::string> peers{"threads", "callbacks", "coroutines", "ring"};

std::filesystem::path program_of(std::string_view peer) {
  if (peer == "threads") return program("14-peer-threads");
  if (peer == "callbacks") return program("14-peer-callbacks");
  if (peer == "coroutines") return program("14-peer-coroutines");
  return program("14-peer-ring");
}

// With a root of its own.
struct peer_server {
  explicit peer_server(std::string_view peer, const std::vector<std::string>& more = {},
                       const child_options& options = {})
      : process{program_of(peer), with_root(more), options} {}

  [[nodiscard]] std::vector<std::string> with_root(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"--root", folder.root().string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] client connect(const client_options& options = {}) const {
    return client{process.port(), options};
  }
  [[nodiscard]] std::string get(std::string_view path) const {
    client visitor = connect();
    visitor.send_all(site_server::last_request(path));
    return visitor.recv_until_eof();
  }

  site_folder folder;
  server_process process;
};

void check_all_golden(std::string_view peer) {
  const peer_server server{peer};
  for (const char* const name :
       {"methods", "connection", "refused", "files", "paths", "conditions", "ranges"}) {
    check_golden(name, server.process.port());
  }
  for (const char* const name : {"methods", "connection", "refused"}) {
    check_golden(name, server.process.port(), sent_as::bytes);
  }
}

}  // namespace

TEST_CASE("14 a thread for each client gives every golden answer", "[14]") {
  check_all_golden("threads");
}

TEST_CASE("14 callbacks over asio give every golden answer", "[14]") {
  check_all_golden("callbacks");
}

TEST_CASE("14 coroutines over asio give every golden answer", "[14]") {
  check_all_golden("coroutines");
}

TEST_CASE("14 a ring without coroutines gives every golden answer", "[14]") {
  check_all_golden("ring");
}

TEST_CASE("14 a peer sends a large file whole, and what was asked behind it", "[14]") {
  for (const std::string& peer : peers) {
    const peer_server server{peer};
    client reader = server.connect(small_buffers);  // so that its sends are short
    reader.send_all(site_server::request("/large.bin") + site_server::request("/hello.txt"));
    UNSCOPED_INFO("14-peer-" << peer << ": a short send is not continued, or the file's next block "
                             << "is written over what is unsent");
    CHECK(compare_bytes(body_of(recv_answer(reader)), site_folder::large()) == identical);
    CHECK(body_of(recv_answer(reader)) == "hello world\n");
  }
}

TEST_CASE("14 a peer answers what came before the client's FIN", "[14]") {
  for (const std::string& peer : peers) {
    const peer_server server{peer};
    client half = server.connect();
    half.send_all(site_server::request("/large.bin") + site_server::request("/hello.txt") + "GET");
    half.shutdown_write();
    const std::string all = half.recv_until_eof();
    UNSCOPED_INFO("14-peer-" << peer << ": the FIN of a client ends what is sent to it");
    CHECK(all.ends_with("\r\n\r\nhello world\n"));
  }
}

TEST_CASE("14 a file that becomes shorter while a peer sends it ends in a reset", "[14]") {
  for (const std::string& peer : peers) {
    const peer_server server{peer};
    server.folder.write("huge.bin", pattern(5, 2 * kernel_buffer_bytes_max()));
    client reader = server.connect(small_buffers);
    reader.send_all(site_server::request("/huge.bin"));
    (void)reader.recv_exactly(1000);
    std::filesystem::resize_file(server.folder.root() / "huge.bin", 1000);
    UNSCOPED_INFO("14-peer-" << peer << ": an answer that is not whole looks as if it were");
    CHECK(reader.wait_for_end() == ending::reset);
  }
}

TEST_CASE("14 clients that misbehave leave nothing behind in a peer", "[14]") {
  for (const std::string& peer : peers) {
    const peer_server server{peer};
    (void)server.get("/large.bin");
    const std::size_t fds = server.process.open_fd_count();
    const std::size_t threads = server.process.thread_count();
    for (int i = 0; i < 300; ++i) {
      client visitor = server.connect();
      const int kind = i % 5;
      if (kind == 0) continue;
      visitor.send_all(kind == 1 ? "GET / HT" : site_server::request("/large.bin"));
      if (kind == 2) (void)visitor.recv_exactly(1000);
      if (kind == 3) visitor.reset();
      if (kind == 4) visitor.shutdown_write();
    }
    UNSCOPED_INFO("14-peer-" << peer << ": a path that ends without closing its socket, or file");
    CHECK(eventually(2 * step_deadline, [&] {
      return server.process.open_fd_count() <= fds && server.process.thread_count() <= threads;
    }));
    CHECK(status_of(server.get("/hello.txt")) == 200);
  }
}

TEST_CASE("14 a peer loses patience with a client that is silent, and with one that is stuck",
          "[14]") {
  for (const std::string& peer : peers) {
    const peer_server server{peer, {"--patience-ms", "100"}};
    server.folder.write("huge.bin", pattern(5, 2 * kernel_buffer_bytes_max()));
    const std::size_t fds = server.process.open_fd_count();
    client silent = server.connect();
    silent.send_all("GET /hello.txt HT");
    client stuck = server.connect(small_buffers);
    stuck.send_all(site_server::request("/huge.bin"));
    (void)stuck.recv_exactly(1000);  // now it is served
    UNSCOPED_INFO("14-peer-" << peer << ": nobody looks how long a client is waited for");
    CHECK(silent.recv_until_eof().empty());
    UNSCOPED_INFO("14-peer-" << peer << ": a client that takes nothing is kept forever");
    CHECK(eventually(2 * step_deadline, [&] { return server.process.open_fd_count() <= fds; }));
    UNSCOPED_INFO("14-peer-" << peer << ": an answer that is not whole looks as if it were");
    CHECK(stuck.wait_for_end() == ending::reset);
  }
}

TEST_CASE("14 a peer at the descriptor limit goes on, and recovers", "[14]") {
  for (const std::string& peer : peers) {
    const peer_server server{peer, {}, {.fd_limit = 32}};
    std::vector<client> many = connect_many(server.process.port(), 60);
    many.front().send_all(site_server::request("/hello.txt"));
    UNSCOPED_INFO("14-peer-" << peer << ": a failed accept ended more than itself");
    CHECK(status_of(recv_answer(many.front())) != 0);
    many.clear();
    UNSCOPED_INFO("14-peer-" << peer << ": the descriptors of those who have left stay in use");
    CHECK(eventually(step_deadline,
                     [&] { return body_of(server.get("/digits.txt")) == "0123456789"; }));
  }
}

TEST_CASE("14 a peer answers what has come before it stops, and ends", "[14]") {
  for (const std::string& peer : peers) {
    peer_server server{peer};
    client idle = server.connect();
    client reader = server.connect();
    reader.send_all(site_server::request("/large.bin"));
    (void)reader.recv_exactly(1000);  // now both are served
    idle.send_all(site_server::request("/hello.txt"));
    CHECK(status_of(recv_answer(idle)) == 200);
    server.process.send_signal(SIGTERM);
    const std::string rest = reader.recv_until_eof();
    UNSCOPED_INFO("14-peer-" << peer << ": the stop cut off an answer");
    CHECK(rest.size() > site_folder::large_bytes - 1000);
    UNSCOPED_INFO(server.process.describe());
    CHECK(server.process.wait_for_exit(server_process::stop_deadline) == exited(0));
  }
}
