// SPDX-License-Identifier: MIT
// 07-http_client, the program, against a server that answers as the test wants it.
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bytes.hpp"
#include "child_process.hpp"
#include "connect_to_any.hpp"
#include "http_get.hpp"
#include "http_peer.hpp"
#include "io_context.hpp"

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using course_test::exited;
using course_test::farewell;
using course_test::http_peer;

namespace {

course_test::finished_program get(const std::string& port, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"127.0.0.1", "/thing", "--port", port};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return course_test::run_program(course_test::program("07-http_client"), arguments);
}

std::string with_length(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string chunked(const std::string& body, std::size_t chunk_bytes) {
  std::ostringstream answer;
  answer << "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (std::size_t at = 0; at < body.size(); at += chunk_bytes) {
    const std::string chunk = body.substr(at, chunk_bytes);
    answer << std::hex << chunk.size() << "\r\n" << chunk << "\r\n";
  }
  answer << "0\r\n\r\n";
  return answer.str();
}

std::string until_eof(const std::string& body) {
  return "HTTP/1.1 200 OK\r\n\r\n" + body;
}

class temporary_folder {
 public:
  temporary_folder() {
    std::string name = (fs::temp_directory_path() / "ring-by-ring-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) common::throw_errno("mkdtemp " + name);
    path_ = name;
  }
  temporary_folder(temporary_folder&&) = delete;
  ~temporary_folder() { fs::remove_all(path_); }

  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] bool is_empty() const { return fs::is_empty(path_); }

 private:
  std::string path_;
};

std::string content_of(const std::string& path) {
  std::ostringstream all;
  all << std::ifstream{path}.rdbuf();
  return all.str();
}

}  // namespace

TEST_CASE("07 http_client asks for one path and writes the body to standard output") {
  http_peer server{with_length("the body\n")};
  const auto run = get(server.port());
  CHECK(run.status == exited(0));
  CHECK(run.stdout_text == "the body\n");
  const std::string request = server.request();
  CHECK_THAT(request, ContainsSubstring("GET /thing HTTP/1.1\r\n"));
  CHECK_THAT(request, ContainsSubstring("Host: 127.0.0.1:" + server.port() + "\r\n"));
  CHECK_THAT(request, ContainsSubstring("Connection: close\r\n"));
}

TEST_CASE("07 http_client gets each form of a body whole, however it is cut") {
  const std::string small = "a small body";
  const std::string large = course_test::pattern(7, 3'000'000);
  struct row {
    std::string answer;
    std::string body;
    std::size_t piece_bytes;
  };
  for (const row& each :
       {row{with_length(""), "", 0}, row{with_length(small), small, 1},
        row{with_length(large), large, 0}, row{chunked(small, 5), small, 1},
        row{chunked(large, 65'537), large, 0}, row{chunked("", 1), "", 1},
        row{until_eof(small), small, 1}, row{until_eof(large), large, 0}, row{until_eof(""), "", 0},
        row{"HTTP/1.1 100 Continue\r\n\r\n" + with_length(small), small, 1},
        row{"HTTP/1.1 204 No Content\r\n\r\n", "", 0}}) {
    const temporary_folder folder;
    http_peer server{each.answer, farewell::close, each.piece_bytes};
    const auto run = get(server.port(), {"--out", folder / "out"});
    UNSCOPED_INFO(each.answer.substr(0, 70));
    REQUIRE(run.status == exited(0));
    CHECK(course_test::compare_bytes(content_of(folder / "out"), each.body) ==
          course_test::identical);
    CHECK_FALSE(fs::exists(folder / "out.part"));
    CHECK(run.stdout_text.empty());
  }
}

TEST_CASE("07 a body that ends too early is an error and leaves no file") {
  const std::string counted_head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
  const std::string chunked_head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& answer :
       {counted_head + "only this", chunked_head + "5\r\nab", chunked_head + "2\r\nab\r\n0\r\n",
        std::string{"HTTP/1.1 200 OK\r\nContent-Le"}, std::string{}}) {
    const temporary_folder folder;
    http_peer server{answer};
    const auto run = get(server.port(), {"--out", folder / "out"});
    UNSCOPED_INFO(answer);
    CHECK(run.status == exited(1));
    CHECK_THAT(run.stderr_text, ContainsSubstring("it ended before its"));
    UNSCOPED_INFO("a file under its final name is whole, or is not there");
    CHECK(folder.is_empty());
  }
}

TEST_CASE("07 an incomplete body leaves the old file as it was") {
  const temporary_folder folder;
  std::ofstream{folder / "out"} << "from before";
  http_peer server{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"};
  CHECK(get(server.port(), {"--out", folder / "out"}).status == exited(1));
  CHECK(content_of(folder / "out") == "from before");
  CHECK_FALSE(fs::exists(folder / "out.part"));
}

TEST_CASE("07 a reset in the middle is an error and leaves no file") {
  const temporary_folder folder;
  http_peer server{"HTTP/1.1 200 OK\r\n\r\n" + std::string(1000, 'x'), farewell::reset};
  const auto run = get(server.port(), {"--out", folder / "out"});
  CHECK(run.status == exited(1));
  CHECK_THAT(run.stderr_text, ContainsSubstring("recv: ECONNRESET"));
  CHECK(folder.is_empty());
}

TEST_CASE("07 a status other than success is an error with the server's words") {
  http_peer server{"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope"};
  const temporary_folder folder;
  const auto run = get(server.port(), {"--out", folder / "out"});
  CHECK(run.status == exited(1));
  CHECK_THAT(run.stderr_text, ContainsSubstring("404 Not Found"));
  CHECK(folder.is_empty());
}

TEST_CASE("07 a head without an end is given up at its limit") {
  const std::string start = "HTTP/1.1 200 OK\r\nX: ";
  const std::size_t room = uring::http::response_input::head_bytes_max - start.size();
  {
    http_peer server{start + std::string(room - 4, 'x') + "\r\n\r\nbody"};
    CHECK(get(server.port()).stdout_text == "body");
  }
  http_peer server{start + std::string(room - 3, 'x') + "\r\n\r\nbody"};
  const auto run = get(server.port());
  CHECK(run.status == exited(1));
  CHECK_THAT(run.stderr_text, ContainsSubstring("its head is larger than 16384 bytes"));
}

TEST_CASE("07 of several addresses the first that answers is taken") {
  const course_test::deaf_port nobody;
  const course_test::tcp_listener listener = course_test::listen_on_any_port();
  std::vector<uring::peer_address> addresses = uring::resolve("127.0.0.1", nobody.number());
  for (const auto& each : uring::resolve("127.0.0.1", listener.port)) addresses.push_back(each);
  uring::io_context context;
  const common::unique_fd connected = context.run(uring::connect_to_any(context, addresses));
  REQUIRE(connected.valid());
  const common::unique_fd accepted{::accept(listener.socket.get(), nullptr, nullptr)};
  CHECK(accepted.valid());
}

TEST_CASE("07 a name with several addresses finds the one that listens") {
  http_peer server{with_length("found")};  // on 127.0.0.1 alone; localhost may be ::1 first
  const auto run = course_test::run_program(course_test::program("07-http_client"),
                                            {"localhost", "/", "--port", server.port()});
  CHECK(run.status == exited(0));
  CHECK(run.stdout_text == "found");
}

TEST_CASE("07 when nobody answers, every address says why") {
  const course_test::deaf_port nobody;
  const auto refused = get(std::to_string(nobody.number()));
  CHECK(refused.status == exited(1));
  CHECK_THAT(refused.stderr_text, ContainsSubstring("connect: 127.0.0.1: ECONNREFUSED"));

  std::vector<uring::peer_address> addresses = uring::resolve("127.0.0.1", nobody.number());
  addresses.push_back(addresses.front());
  uring::io_context context;
  CHECK_THROWS_WITH(context.run(uring::connect_to_any(context, addresses)),
                    ContainsSubstring("refused); 127.0.0.1: ECONNREFUSED"));

  const auto unknown = course_test::run_program(course_test::program("07-http_client"),
                                                {"no-such-host.invalid", "/"});
  CHECK(unknown.status == exited(1));
  CHECK_THAT(unknown.stderr_text, ContainsSubstring("resolve no-such-host.invalid"));
}

TEST_CASE("07 http_client prints how to call it") {
  const auto nothing = course_test::run_program(course_test::program("07-http_client"), {});
  CHECK(nothing.status == exited(2));
  CHECK_THAT(nothing.stderr_text, ContainsSubstring("HOST"));
  const auto relative =
      course_test::run_program(course_test::program("07-http_client"), {"127.0.0.1", "index.html"});
  CHECK(relative.status == exited(1));
  CHECK_THAT(relative.stderr_text, ContainsSubstring("begins with a slash"));
}

TEST_CASE("07 a file that cannot be written is an error that names it") {
  http_peer server{with_length("body")};
  const auto run = get(server.port(), {"--out", "/no-such-folder/out"});
  CHECK(run.status == exited(1));
  CHECK_THAT(run.stderr_text, ContainsSubstring("open /no-such-folder/out.part: ENOENT"));
}

TEST_CASE("07 http_client replaces regular files only") {
  const temporary_folder folder;
  const std::string pipe = folder / "pipe";  // in the place of /dev/null
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& name : {pipe, folder / "."}) {
    http_peer server{with_length("body")};
    const auto run = get(server.port(), {"--out", name});
    CHECK(run.status == exited(1));
    CHECK_THAT(run.stderr_text, ContainsSubstring(name + " is no file"));
  }
  UNSCOPED_INFO("a rename replaces the file of that name, even if it is a device");
  CHECK(fs::is_fifo(pipe));
  CHECK_FALSE(fs::exists(folder / "pipe.part"));
}
