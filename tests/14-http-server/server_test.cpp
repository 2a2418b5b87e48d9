// SPDX-License-Identifier: MIT
// The whole server: what changes on the disk, who waits for whom, and what it holds on to.
#include <signal.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bytes.hpp"
#include "eventually.hpp"
#include "process_counts.hpp"
#include "site_server.hpp"
#include "stalled_client.hpp"

using namespace course_test;

namespace {

std::string conditional(const std::string& field) {
  return "GET /digits.txt HTTP/1.1\r\nHost: a\r\n" + field + "\r\n\r\n";
}

std::string text_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream{file}.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("14 a file that changes is sent as it is now", "[14]") {
  const site_server server{{"--fresh-ms", "0"}};
  CHECK(body_of(server.get("/hello.txt")) == "hello world\n");
  server.folder.write("hello.txt", "another one\n");  // of the same size
  server.folder.touch("hello.txt", 1);
  CHECK(body_of(server.get("/hello.txt")) == "another one\n");
  std::filesystem::rename(server.folder.root() / "digits.txt", server.folder.root() / "hello.txt");
  UNSCOPED_INFO("another file has taken the name");
  CHECK(body_of(server.get("/hello.txt")) == "0123456789");
  std::filesystem::remove(server.folder.root() / "hello.txt");
  CHECK(status_of(server.get("/hello.txt")) == 404);
}

TEST_CASE("14 no answer says that a file was changed after its own Date", "[14]") {
  const site_server server;
  server.folder.touch("hello.txt", 2'000'000'000);  // in 2065
  for (int i = 0; i < 2; ++i) {
    const std::string answer = server.get("/hello.txt");
    UNSCOPED_INFO("a file of the future, request " << i + 1 << ": see RFC 9110 on Last-Modified");
    CHECK(status_of(answer) == 200);
    CHECK(answer.find(" 2065 ") == std::string::npos);
    CHECK(answer.find("\r\nLast-Modified: ") != std::string::npos);
  }
}

TEST_CASE("14 a large file comes whole, and in parts", "[14]") {
  const site_server server;
  const std::string large = site_folder::large();
  CHECK(compare_bytes(body_of(server.get("/large.bin")), large) == identical);
  client peer = server.connect();
  peer.send_all("GET /large.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=70000-200000\r\n\r\n" +
                site_server::request("/hello.txt"));
  const std::string part = recv_answer(peer);
  CHECK(status_of(part) == 206);
  CHECK(compare_bytes(body_of(part), large.substr(70000, 130001)) == identical);
  CHECK(body_of(recv_answer(peer)) == "hello world\n");
}

TEST_CASE("14 files around the size of a block come whole", "[14]") {
  const site_server server;
  for (const std::size_t bytes : {64'511U, 64'512U, 64'513U, 65'535U, 65'536U, 65'537U, 131'073U}) {
    const std::string text = pattern(2, bytes);
    server.folder.write("sized.bin", text);
    server.folder.touch("sized.bin", static_cast<int>(bytes));
    std::filesystem::remove(server.folder.root() / "now.bin");
    const std::string name = "sized" + std::to_string(bytes) + ".bin";
    std::filesystem::rename(server.folder.root() / "sized.bin", server.folder.root() / name);
    for (int i = 0; i < 2; ++i) {
      UNSCOPED_INFO(bytes << " bytes, request " << i + 1);
      CHECK(compare_bytes(body_of(server.get("/" + name)), text) == identical);
    }
  }
}

TEST_CASE("14 a client that does not read delays nobody", "[14]") {
  const site_server server{{"--buffers", "4"}};
  server.folder.write("huge.bin", pattern(5, 2 * kernel_buffer_bytes_max()));
  std::vector<client> stuck;
  for (int i = 0; i < 8; ++i) {
    stuck.push_back(server.connect(small_buffers));
    stuck.back().send_all(site_server::request("/huge.bin"));
    for (int k = 0; k < 40; ++k) (void)stuck.back().send_some(site_server::request("/huge.bin"));
  }
  for (int i = 0; i < 20; ++i) {
    UNSCOPED_INFO(
        "eight clients read nothing: they hold all buffers of the pool, or the only send");
    CHECK(body_of(server.get("/hello.txt")) == "hello world\n");
  }
}

TEST_CASE("14 a client that sends without reading fills no memory", "[14]") {
  const site_server server;
  client flood = server.connect(small_buffers);
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += site_server::request("/large.bin");
  const std::size_t before = server.process.resident_bytes();
  std::size_t sent = 0;
  const bool is_stalled = !happens_within(milliseconds{1500}, [&] {
    sent += flood.send_some(requests);
    return sent > 64 * 1024 * 1024;
  });
  UNSCOPED_INFO("it reads request after request of a client that takes no answer");
  CHECK(is_stalled);
  CHECK(server.process.resident_bytes() < before + 8 * 1024 * 1024);
  CHECK(status_of(server.get("/hello.txt")) == 200);
}

TEST_CASE("14 at the limit of connections the longest idle client makes room", "[14]") {
  const site_server server{{"--connections-max", "3"}};
  std::vector<client> idle;
  for (int i = 0; i < 3; ++i) {
    idle.push_back(server.connect());
    idle.back().send_all(site_server::request("/hello.txt"));
    CHECK(status_of(recv_answer(idle.back())) == 200);
  }
  UNSCOPED_INFO("three of three: nobody had to go for them");
  idle[0].send_all(site_server::request("/hello.txt"));
  CHECK(status_of(recv_answer(idle[0])) == 200);  // idle[1] is the longest idle now
  CHECK(body_of(server.get("/hello.txt")) == "hello world\n");
  UNSCOPED_INFO("one more has come, and the client that asked for nothing for longest has to go");
  CHECK(idle[1].recv_until_eof().empty());
  idle[0].send_all(site_server::request("/hello.txt"));
  CHECK(status_of(recv_answer(idle[0])) == 200);
}

TEST_CASE("14 at the limit of connections a client waits if nobody is idle", "[14]") {
  const site_server server{{"--connections-max", "1"}};
  client begun = server.connect();
  begun.send_all("GET /hello.txt HTTP/1.1\r\nHo");
  client next = server.connect();
  next.send_all(site_server::last_request("/digits.txt"));
  begun.send_all("st: a\r\nConnection: close\r\n\r\n");
  CHECK(body_of(begun.recv_until_eof()) == "hello world\n");
  CHECK(body_of(next.recv_until_eof()) == "0123456789");
}

TEST_CASE("14 at the limit of connections a burst takes one descriptor more, and is served",
          "[14]") {
  site_server server{{"--connections-max", "4"}};
  const std::size_t none = server.process.open_fd_count();
  server.process.send_signal(SIGSTOP);  // so that all of them are in the backlog when it goes on
  REQUIRE(eventually(step_deadline, [&] { return process_state(server.process.pid()) == 'T'; }));
  std::vector<client> burst = connect_many(server.process.port(), 300);
  for (client& each : burst) each.send_all(site_server::last_request("/-/counters"));
  server.process.send_signal(SIGCONT);
  std::size_t most = 0;
  std::size_t served = 0;
  for (client& each : burst) {
    most = std::max(most, server.process.open_fd_count());
    served += status_of(each.recv_until_eof()) == 200 ? 1 : 0;
    each.close();
  }
  UNSCOPED_INFO("a multishot accept takes the whole backlog before its first client is counted");
  CHECK(most <= none + 4 + 1);
  CHECK(served == 300);
}

TEST_CASE("14 all threads together keep to the limit of connections", "[14]") {
  const site_server server{{"--threads", "2", "--connections-max", "3"}};  // one of each thread
  const std::size_t none = server.process.open_fd_count();
  std::vector<client> begun = connect_many(server.process.port(), 20);
  for (client& each : begun) each.send_all("GET /hello.txt HTTP/1.1\r\nHo");
  UNSCOPED_INFO("each thread has its share, rounded down, and one client that waits");
  const auto is_over = [&] { return server.process.open_fd_count() > none + 2 + 2; };
  CHECK_FALSE(happens_within(milliseconds{300}, is_over));
}

TEST_CASE("14 fewer connections than threads are a sentence, and status 2", "[14]") {
  const finished_program run =
      run_program(program("14-server"), {"--threads", "4", "--connections-max", "3"});
  CHECK(run.status == exited(2));
  CHECK(run.stderr_text.find("4 threads cannot share 3 connections") != std::string::npos);
}

TEST_CASE("14 at the descriptor limit it goes on, and recovers", "[14]") {
  const site_server server{{}, {.fd_limit = 32}};
  std::vector<client> many = connect_many(server.process.port(), 60);
  CHECK(body_of(server.get("/hello.txt")) == "hello world\n");
  many.clear();
  CHECK(body_of(server.get("/digits.txt")) == "0123456789");
}

TEST_CASE("14 two thousand clients leave nothing behind", "[14]") {
  const site_server server;
  (void)server.get("/large.bin");
  const std::size_t fds = server.process.open_fd_count();
  for (int i = 0; i < 2000; ++i) {
    client visitor = server.connect();
    const int kind = i % 5;
    if (kind == 0) continue;
    visitor.send_all(kind == 1 ? "GET / HT" : site_server::request("/large.bin"));
    if (kind == 2) (void)visitor.recv_exactly(1000);
    if (kind == 3) visitor.reset();
    if (kind == 4) visitor.shutdown_write();
  }
  UNSCOPED_INFO("a path that ends a connection without closing its socket, or its file");
  CHECK(eventually(2 * step_deadline, [&] { return server.process.open_fd_count() <= fds; }));
  CHECK(status_of(server.get("/hello.txt")) == 200);
}

TEST_CASE("14 counters add up", "[14]") {
  const site_server server{{"--threads", "2"}};
  for (int i = 0; i < 20; ++i) (void)server.get(i % 2 == 0 ? "/hello.txt" : "/none");
  CHECK(server.counter("requests") == 20);
  CHECK(server.counter("answers_4xx") == 10);
  CHECK(server.counter("cache_hits") >= 8);  // each thread has a cache of its own
}

TEST_CASE("14 the log has a line for each answer", "[14]") {
  const site_folder beside;
  const std::string file = beside.beside("access.log").string();
  {
    site_server server{{"--access-log", file}};
    (void)server.get("/hello.txt?a=b");
    (void)server.get("/none");
    (void)server.get("/docs");
    (void)server.get("/large.bin");
    client asks = server.connect();
    asks.send_all("HEAD /digits.txt HTTP/1.1\r\nHost: a\r\n\r\n" + conditional("Range: bytes=2-4") +
                  conditional("Range: bytes=10-") + conditional("If-Match: \"x\"") +
                  conditional("If-None-Match: *") +
                  "POST /-/echo HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello");
    (void)asks.recv_until_eof();
    client bad = server.connect();
    bad.send_all("GET / HTTP/1.1\r\nX: \x01\r\n\r\n");
    (void)bad.recv_until_eof();
    CHECK(server.process.stop() == exited(0));
  }
  const std::string text = text_of(file);
  UNSCOPED_INFO("the log:\n" << text);
  CHECK(text.find("127.0.0.1 - - [") == 0);
  for (const char* const line :
       {"\"GET /hello.txt?a=b HTTP/1.1\" 200 12\n", "\"GET /none HTTP/1.1\" 404 14\n",
        "\"GET /docs HTTP/1.1\" 301 22\n", "\"GET /large.bin HTTP/1.1\" 200 300000\n",
        "\"HEAD /digits.txt HTTP/1.1\" 200 0\n", "\"GET /digits.txt HTTP/1.1\" 206 3\n",
        "\"GET /digits.txt HTTP/1.1\" 416 26\n", "\"GET /digits.txt HTTP/1.1\" 412 24\n",
        "\"GET /digits.txt HTTP/1.1\" 304 0\n", "\"POST /-/echo HTTP/1.0\" 200 5\n",
        "\"-\" 400 16\n"}) {
    UNSCOPED_INFO("the log:\n" << text << "and it should have\n" << line);
    CHECK(text.find(line) != std::string::npos);
  }
}

TEST_CASE("14 no client writes more into the log than its own request line", "[14]") {
  const site_folder beside;
  const std::string file = beside.beside("access.log").string();
  site_server server{{"--access-log", file}};
  (void)server.get("/a\"_200_0_\\\"b");
  CHECK(server.process.stop() == exited(0));
  const std::string text = text_of(file);
  UNSCOPED_INFO("a request that came just before the stop is not in the log");
  CHECK(text.ends_with('\n'));
  UNSCOPED_INFO("a quote or a backslash of the target is in the log as it came:\n" << text);
  CHECK(text.find("\"GET /a\\x22_200_0_\\x5c\\x22b HTTP/1.1\" 404 14\n") != std::string::npos);
}

TEST_CASE("14 a root whose index.html is a folder has no page", "[14]") {
  const site_server server;
  std::filesystem::remove(server.folder.root() / "index.html");
  std::filesystem::create_directory(server.folder.root() / "index.html");
  UNSCOPED_INFO("a redirect to //, which is another host");
  CHECK(status_of(server.get("/")) == 404);
}

TEST_CASE("14 a root that is not there is a sentence, and status 1", "[14]") {
  const finished_program run = run_program(program("14-server"), {"--root", "/no/such/folder"});
  CHECK(run.status == exited(1));
  CHECK(run.stderr_text.find("open the root, /no/such/folder: ENOENT") != std::string::npos);
}
