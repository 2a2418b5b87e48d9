// SPDX-License-Identifier: MIT
// How the server stops: in which order, and in bounded time.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "bytes.hpp"
#include "eventually.hpp"
#include "process_counts.hpp"
#include "site_server.hpp"
#include "stalled_client.hpp"
#include "unique_fd.hpp"

using namespace course_test;

namespace {

// A stop was asked for, and has been heard: no new client gets in.
bool is_draining(const site_server& server) {
  try {
    const client late = server.connect();
    return false;
  } catch (const client_error&) {
    return true;
  } catch (const std::system_error&) {
    return true;
  }
}

}  // namespace

TEST_CASE("14.5 a server without clients stops at once", "[14.5]") {
  site_server server;
  UNSCOPED_INFO(
      "accept_clients(), the last task, ends when accepting_ is canceled, and this cancels over_: "
      "the wait for drain_ms ends only if it is under over_");
  CHECK(server.process.stop() == exited(0));
}

TEST_CASE("14.5 idle clients are sent home, and not waited for", "[14.5]") {
  site_server server{{"--drain-timeout-ms", "3600000"}};
  client silent = server.connect();
  client idle = server.connect();
  idle.send_all(site_server::request("/hello.txt"));
  CHECK(status_of(recv_answer(idle)) == 200);
  server.process.send_signal(SIGTERM);
  UNSCOPED_INFO("it waits for nothing but a request, and may go: site_.limits.end_idle()");
  CHECK(idle.recv_until_eof().empty());
  CHECK(silent.recv_until_eof().empty());
  CHECK(server.process.wait_for_exit(server_process::stop_deadline) == exited(0));
}

TEST_CASE("14.5 a request that has begun is answered, and told that it is the last", "[14.5]") {
  site_server server{{"--drain-timeout-ms", "3600000"}};
  client peer = server.connect();
  peer.send_all("GET /hello.txt HTTP/1.1\r\nHo");
  REQUIRE(eventually(step_deadline, [&] { return peer.unacknowledged_bytes() == 0; }));
  REQUIRE(server.counter("connections") == 2);  // by now it has been read
  server.process.send_signal(SIGTERM);
  REQUIRE(eventually(step_deadline, [&] { return is_draining(server); }));
  peer.send_all("st: a\r\n\r\n");
  const std::string answer = peer.recv_until_eof();
  UNSCOPED_INFO("what is under way is finished: the clients were canceled too early");
  CHECK(body_of(answer) == "hello world\n");
  UNSCOPED_INFO("site_.is_draining makes each answer its connection's last");
  CHECK(answer.find("\r\nConnection: close\r\n") != std::string::npos);
  peer.close();  // until then the server waits, for as long as its goodbye may take
  CHECK(server.process.wait_for_exit(server_process::stop_deadline) == exited(0));
}

TEST_CASE("14.5 from the stop on nobody new is let in", "[14.5]") {
  site_server server{{"--drain-timeout-ms", "3600000"}};
  client peer = server.connect();
  peer.send_all("GET /hello.txt HTTP/1.1\r\nHo");
  REQUIRE(server.counter("connections") == 2);
  server.process.send_signal(SIGTERM);
  UNSCOPED_INFO("the listener is closed when the accept has ended: cancel accepting_");
  CHECK(eventually(step_deadline, [&] { return is_draining(server); }));
  peer.send_all("st: a\r\n\r\n");
  UNSCOPED_INFO("it refuses everybody because it is gone");
  CHECK(body_of(peer.recv_until_eof()) == "hello world\n");
}

TEST_CASE("14.5 a client that takes its time does not keep the server", "[14.5]") {
  site_server server{{"--drain-timeout-ms", "100"}};
  server.folder.write("huge.bin", pattern(5, 2 * kernel_buffer_bytes_max()));
  client stuck = server.connect(small_buffers);
  stuck.send_all(site_server::request("/huge.bin"));
  client begun = server.connect();
  begun.send_all("GET / HT");
  REQUIRE(server.counter("connections") == 3);
  UNSCOPED_INFO("after drain_ms the rest is given up: stop_in_order() has to end then");
  CHECK(server.process.stop(SIGTERM, milliseconds{5000}) == exited(0));
}

TEST_CASE("14.5 a large answer that is under way is finished", "[14.5]") {
  site_server server{{"--drain-timeout-ms", "3600000"}};
  const std::string huge = pattern(5, 2 * kernel_buffer_bytes_max());
  server.folder.write("huge.bin", huge);
  client peer = server.connect();  // it reads the body only when the stop has been heard
  peer.send_all(site_server::request("/huge.bin"));
  // The head comes before the stop, so it does not say that the connection ends.
  REQUIRE(status_of(recv_head(peer)) == 200);
  server.process.send_signal(SIGTERM);
  REQUIRE(eventually(step_deadline, [&] { return is_draining(server); }));
  UNSCOPED_INFO("it was cut off by the stop, and not by its time");
  CHECK(compare_bytes(peer.recv_exactly(huge.size(), 4 * step_deadline), huge) == identical);
  UNSCOPED_INFO(
      "its answer is whole, but the connection stays: end_idle() also ends those that become idle "
      "later");
  CHECK(peer.wait_for_end() == ending::eof);
  peer.close();  // until then the server waits, for as long as its goodbye may take
  CHECK(server.process.wait_for_exit(server_process::stop_deadline) == exited(0));
}

TEST_CASE("14 what had arrived when the stop came is answered", "[14]") {
  site_server server;
  client peer = server.connect();
  peer.send_all(site_server::request("/hello.txt"));
  CHECK(status_of(recv_answer(peer)) == 200);
  server.process.send_signal(SIGSTOP);  // so that the request is there, unread, when SIGTERM comes
  peer.send_all(site_server::request("/digits.txt"));
  REQUIRE(eventually(step_deadline, [&] { return peer.unacknowledged_bytes() == 0; }));
  server.process.send_signal(SIGTERM);
  server.process.send_signal(SIGCONT);
  UNSCOPED_INFO("the client has done nothing wrong: its request was here before the stop");
  CHECK(body_of(peer.recv_until_eof()) == "0123456789");
}

TEST_CASE("14 a log that nobody reads does not keep the server, and its lines are counted",
          "[14]") {
  const site_folder beside;
  const std::string pipe = beside.beside("access.fifo").string();
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const common::unique_fd reader{::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  REQUIRE(reader.valid());
  site_server server{{"--access-log", pipe, "--drain-timeout-ms", "100"}};
  const std::string long_path = "/none?" + std::string(8000, 'x');
  for (int i = 0; i < 300; ++i) CHECK(status_of(server.get(long_path)) == 404);
  UNSCOPED_INFO("a write to a full pipe waits forever: the last one needs a limit as well");
  CHECK(server.process.stop(SIGTERM, milliseconds{5000}) == exited(0));
  CHECK(server.process.stderr_text().find("the access log lacks ") != std::string::npos);
}

TEST_CASE("14 a second signal ends it at once", "[14]") {
  site_server server{{"--drain-timeout-ms", "3600000"}};
  client begun = server.connect();
  begun.send_all("GET / HT");
  REQUIRE(server.counter("connections") == 2);
  server.process.send_signal(SIGTERM);
  REQUIRE(eventually(step_deadline, [&] { return is_draining(server); }));
  CHECK(server.process.stop(SIGTERM) == killed_by(SIGTERM));
}
