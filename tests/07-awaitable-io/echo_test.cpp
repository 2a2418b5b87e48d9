// SPDX-License-Identifier: MIT
// Task 07.5: the echo as straight code, first with a kernel that the test plays, then with clients.
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "allocations.hpp"
#include "bytes.hpp"
#include "client.hpp"
#include "descriptor_limit.hpp"
#include "echo_server.hpp"
#include "errors.hpp"
#include "eventually.hpp"
#include "fd_scope.hpp"
#include "listen.hpp"
#include "scripted_kernel.hpp"
#include "serving.hpp"
#include "socket_pair.hpp"
#include "stalled_client.hpp"
#include "watchdog.hpp"

using namespace std::chrono_literals;
using course_test::bytes_of;
using course_test::client;
using course_test::identical;
using course_test::scripted_kernel;
using course_test::serving;
using course_test::watchdog;

namespace {

// One echo on a socket that does not exist: the test answers for the kernel.
struct scripted_echo {
  static constexpr int socket = 77;

  uring::io_context context;
  scripted_kernel kernel{context};
  bool over = false;

  scripted_echo() { context.spawn(run(*this)); }

  // The next request, which must be a recv.
  [[nodiscard]] ::io_uring_sqe take_recv() {
    const ::io_uring_sqe request = kernel.take();
    REQUIRE(static_cast<int>(request.opcode) == IORING_OP_RECV);
    REQUIRE(request.fd == socket);
    return request;
  }

  [[nodiscard]] ::io_uring_sqe take_send() {
    const ::io_uring_sqe request = kernel.take();
    REQUIRE(static_cast<int>(request.opcode) == IORING_OP_SEND);
    REQUIRE((request.msg_flags & MSG_NOSIGNAL) != 0);
    return request;
  }

 private:
  static uring::task<> run(scripted_echo& self) {
    co_await uring::echo_until_eof(self.context, socket);
    self.over = true;
  }
};

struct fixture {
  explicit fixture(const uring::ring_options& options = {})
      : fixture{common::listen_on("127.0.0.1", 0), options} {}
  explicit fixture(course_test::tcp_listener listener) : fixture{std::move(listener.socket), {}} {}

  common::stop_signal stop;
  std::uint16_t port;
  uring::echo_server loop;

 private:
  fixture(common::unique_fd listener, const uring::ring_options& options)
      : port{course_test::port_of(listener.get())}, loop{std::move(listener), stop, options} {}
};

}  // namespace

TEST_CASE("07.5 what was received is sent back, and then comes the next", "[07.5]") {
  scripted_echo echo;
  for (const std::string message : {"hello", "again"}) {
    echo.kernel.answer(echo.take_recv(), message);
    const ::io_uring_sqe send = echo.take_send();
    UNSCOPED_INFO("res is how much came: send that, and not the whole buffer");
    CHECK(course_test::compare_bytes(bytes_of(send), message) == identical);
    echo.kernel.answer(send, static_cast<std::int32_t>(message.size()));
  }
  UNSCOPED_INFO("after a send comes a recv");
  echo.kernel.answer(echo.take_recv(), 0);
  CHECK(echo.over);
}

TEST_CASE("07.5 a short send goes on where it stopped", "[07.5]") {
  scripted_echo echo;
  echo.kernel.answer(echo.take_recv(), "0123456789");
  std::string rest = "0123456789";
  for (const std::int32_t taken : {1, 4, 5}) {
    const ::io_uring_sqe send = echo.kernel.take();
    UNSCOPED_INFO("a short send: res bytes have gone, the rest is still to be sent");
    REQUIRE(static_cast<int>(send.opcode) == IORING_OP_SEND);
    UNSCOPED_INFO("go on where it stopped: neither from the start, nor with bytes left out");
    CHECK(bytes_of(send) == rest);
    rest.erase(0, static_cast<std::size_t>(taken));
    echo.kernel.answer(send, taken);
  }
  echo.kernel.answer(echo.take_recv(), 0);
  CHECK(echo.over);
}

TEST_CASE("07.5 what was only interrupted is made again", "[07.5]") {
  for (const int error : {EINTR, EAGAIN}) {
    scripted_echo echo;
    echo.kernel.answer(echo.take_recv(), -error);
    UNSCOPED_INFO("recv completed with -" << common::describe_errno(error)
                                          << ", and nothing has happened: ask again");
    REQUIRE_FALSE(echo.over);
    echo.kernel.answer(echo.take_recv(), "abc");
    echo.kernel.answer(echo.take_send(), -error);
    UNSCOPED_INFO("send completed with -" << common::describe_errno(error)
                                          << ", and nothing has happened: send it again");
    REQUIRE_FALSE(echo.over);
    const ::io_uring_sqe send = echo.take_send();
    CHECK(bytes_of(send) == "abc");
    echo.kernel.answer(send, 3);
    echo.kernel.answer(echo.take_recv(), 0);
    CHECK(echo.over);
  }
}

TEST_CASE("07.5 the end of a client is the end of its coroutine", "[07.5]") {
  for (const std::int32_t res : {0, -ECONNRESET, -ETIMEDOUT, -ECANCELED}) {
    scripted_echo echo;
    echo.kernel.answer(echo.take_recv(), res);
    UNSCOPED_INFO("recv completed with " << res << ": there will be nothing more");
    REQUIRE(echo.over);
    CHECK(echo.context.in_flight() == 0);
  }
  for (const std::int32_t res : {-EPIPE, -ECONNRESET, -ECANCELED}) {
    scripted_echo echo;
    echo.kernel.answer(echo.take_recv(), "unwanted");
    echo.kernel.answer(echo.take_send(), res);
    UNSCOPED_INFO("send completed with " << res << ": nobody will read the rest");
    REQUIRE(echo.over);
  }
}

TEST_CASE("07.5 a message comes back, and so does the next", "[07.5]") {
  const watchdog deadline{10s, "the client was to be served"};
  fixture server;
  const serving loop{server};
  client talker{server.port};
  CHECK(talker.echo("hello") == "hello");
  CHECK(talker.echo("again") == "again");
}

TEST_CASE("07.5 a reader that comes late gets every byte", "[07.5]") {
  const watchdog deadline{15s, "the client was to be served"};
  fixture server{course_test::listen_on_any_port(4096)};  // its clients' sends are short
  const serving loop{server};
  client late{server.port, course_test::short_send_buffers};
  const std::size_t sent =
      course_test::send_until_stalled(late, 2 * course_test::kernel_buffer_bytes_max());
  UNSCOPED_INFO("missing bytes: the rest of a short send was dropped");
  CHECK(course_test::compare_bytes(late.recv_exactly(sent), course_test::pattern(0, sent)) ==
        identical);
}

TEST_CASE("07 an echo allocates nothing") {
  scripted_echo echo;
  std::size_t allocated = 0;
  for (int i = 0; i < 100; ++i) {
    const ::io_uring_sqe recv = echo.take_recv();
    const std::size_t before = course_test::allocations();
    echo.kernel.answer(recv, "hello");
    allocated += course_test::allocations() - before;
    const ::io_uring_sqe send = echo.take_send();
    const std::size_t between = course_test::allocations();
    echo.kernel.answer(send, 5);
    allocated += course_test::allocations() - between;
  }
  UNSCOPED_INFO("operations lie in the frame: neither a recv nor a send needs memory of its own");
  CHECK(allocated == 0);
  echo.kernel.answer(echo.take_recv(), 0);
}

TEST_CASE("07 clients that leave take their frames and descriptors with them") {
  const watchdog deadline{15s, "the clients were to be served"};
  fixture server;
  const course_test::fd_scope fds;
  const serving loop{server};
  for (int i = 0; i < 20; ++i) {
    client visitor{server.port};
    REQUIRE(visitor.echo("x") == "x");
    if (i % 2 == 0) visitor.reset();
  }
  CHECK(course_test::eventually(2s, [&] { return fds.leaked().empty(); }));
}

TEST_CASE("07 fifty clients are served through a ring with four entries") {
  const watchdog deadline{15s, "the clients were to be served"};
  fixture server{{.sq_entries = 4, .cq_entries = 8}};
  const serving loop{server};
  std::vector<client> clients = course_test::connect_many(server.port, 50);
  const auto messages = course_test::own_messages(clients.size(), 20'000);
  CHECK(course_test::compare_all(course_test::echo_all(clients, messages), messages) == identical);
}

TEST_CASE("07 a server that nobody has run ends with its tasks") {
  const watchdog deadline{5s, "the destructor has to cancel whatever waits"};
  const course_test::fd_scope fds;
  {
    fixture server;
    const client waiting{server.port};
  }
  CHECK(fds.leaked().empty());
}
