// SPDX-License-Identifier: MIT
// send_file from outside: the file for every client, in each of three ways.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "bytes.hpp"
#include "child_process.hpp"
#include "client.hpp"
#include "eventually.hpp"
#include "server_process.hpp"
#include "test_folder.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using course_test::client;
using course_test::ending;
using course_test::eventually;
using course_test::exited;
using course_test::noise;
using course_test::server_process;
using course_test::test_folder;

namespace {

using words = std::vector<std::string>;

constexpr std::size_t mib = 1 << 20;

server_process serve(const std::string& path, const std::string& by, const words& more = {}) {
  words arguments{path, "--by", by};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return server_process{course_test::program("11-send_file"), arguments};
}

void check_download(server_process& server, const std::string& content) {
  client downloads{server.port()};
  CHECK(course_test::compare_bytes(downloads.recv_until_eof(30s), content) ==
        course_test::identical);
}

const words ways{"splice", "copy", "zero-copy"};

}  // namespace

TEST_CASE("11 send_file sends files of every size, in every way", "[11]") {
  const test_folder folder;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, 64 * 1024 + std::size_t{1},
                                  256 * 1024 - std::size_t{1}, 3 * mib}) {
    const std::string content = noise(bytes);
    const std::string path = folder.add("a", content);
    for (const std::string& by : ways) {
      INFO(bytes << " bytes by " << by);
      server_process server = serve(path, by);
      check_download(server, content);
      check_download(server, content);
      CHECK(server.stop() == exited(0));
    }
  }
}

TEST_CASE("11 send_file sends 100 MiB, in every way", "[11]") {
  const test_folder folder;
  const std::string content = noise(100 * mib);
  const std::string path = folder.add("a", content);
  for (const std::string& by : ways) {
    server_process server = serve(path, by);
    check_download(server, content);
  }
}

TEST_CASE("11 send_file works on every ring, and with small pieces", "[11]") {
  const test_folder folder;
  const std::string content = noise(mib + 1);
  const std::string path = folder.add("a", content);
  for (const std::string& by : ways) {
    for (const words& more :
         {words{"--ring-flags", "coop"}, words{"--ring-flags", "defer", "--sq", "4", "--cq", "8"},
          words{"--ring-flags", "sqpoll"}, words{"--piece", "4096"}, words{"--piece", "1048576"}}) {
      INFO("by " << by << " with " << more[0] << " " << more[1]);
      server_process server = serve(path, by, more);
      check_download(server, content);
      CHECK(server.stop() == exited(0));
    }
  }
}

TEST_CASE("11 send_file serves many clients at a time, and keeps no descriptor", "[11]") {
  const test_folder folder;
  const std::string content = noise(200'000);
  const std::string path = folder.add("a", content);
  for (const std::string& by : ways) {
    server_process server = serve(path, by);
    check_download(server, content);
    const std::size_t before = server.open_fd_count();
    for (int round = 0; round < 3; ++round) {
      std::vector<client> clients = course_test::connect_many(server.port(), 30);
      for (client& each : clients) {
        REQUIRE(course_test::compare_bytes(each.recv_until_eof(), content) ==
                course_test::identical);
      }
    }
    CHECK(eventually(2s, [&] { return server.open_fd_count() == before; }));
  }
}

TEST_CASE("11 send_file is not hurt by clients that leave, or that do not read", "[11]") {
  const test_folder folder;
  const std::string content = noise(32 * mib);
  const std::string path = folder.add("a", content);
  for (const std::string& by : ways) {
    INFO("by " << by);
    server_process server = serve(path, by);
    std::vector<client> silent = course_test::connect_many(server.port(), 5);
    for (int i = 0; i < 20; ++i) {
      client leaves{server.port()};
      (void)leaves.recv_exactly(1000);
      leaves.reset();
    }
    check_download(server, content);
    UNSCOPED_INFO("clients that do not read must not keep the server from stopping");
    CHECK(server.stop(SIGTERM, 8s) == exited(0));
    UNSCOPED_INFO("a client that did not get all of it is reset: EOF would say that it has it");
    CHECK(silent[0].wait_for_end() == ending::reset);
  }
}

TEST_CASE("11 send_file waits for a client that reads slowly", "[11]") {
  const test_folder folder;
  const std::string content = noise(8 * mib);
  const std::string path = folder.add("a", content);
  for (const std::string& by : ways) {
    server_process server = serve(path, by);
    client slow{server.port(), {.receive_buffer_bytes = 4096}};
    std::string got = slow.recv_exactly(100'000);
    std::this_thread::sleep_for(20ms);
    got += slow.recv_until_eof(30s);
    CHECK(course_test::compare_bytes(got, content) == course_test::identical);
  }
}

TEST_CASE("11 send_file resets a client whose file has become shorter", "[11]") {
  for (const std::string& by : ways) {
    INFO("by " << by);
    const test_folder folder;
    const std::string path = folder.add("a", noise(64 * mib));
    server_process server = serve(path, by);
    client downloads{server.port(), {.receive_buffer_bytes = 4096}};
    (void)downloads.recv_exactly(1000);
    std::filesystem::resize_file(path, 500);
    CHECK(downloads.wait_for_end(30s) == ending::reset);
    UNSCOPED_INFO("the server goes on with what the file has now");
    client next{server.port()};
    CHECK(next.recv_until_eof().size() == 500);
    CHECK(
        eventually(2s, [&] { return server.stderr_text().find("shorter") != std::string::npos; }));
  }
}

TEST_CASE("11 send_file names the file that it cannot serve", "[11]") {
  const test_folder folder;
  const auto run = [](const words& arguments) {
    return course_test::run_program(course_test::program("11-send_file"), arguments);
  };
  const course_test::finished_program missing = run({folder.path("none")});
  CHECK(missing.status == exited(1));
  CHECK_THAT(missing.stderr_text, ContainsSubstring("none: ENOENT"));
  CHECK(run({folder.path("")}).status == exited(1));
  CHECK(run({folder.add("a", "x"), "--by", "magic"}).status == exited(2));
  CHECK(run({}).status == exited(2));
}
