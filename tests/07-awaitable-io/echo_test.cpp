// SPDX-License-Identifier: MIT
// Task 07.6: the echo as straight code, first with a kernel that the test plays, then with clients.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>
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
#include "manual_ring.hpp"
#include "outcome.hpp"
#include "scripted_ring.hpp"
#include "serving.hpp"
#include "socket_pair.hpp"
#include "stalled_client.hpp"
#include "watchdog.hpp"

using namespace std::chrono_literals;
using course_test::bytes_of;
using course_test::client;
using course_test::identical;
using course_test::manual_ring;
using course_test::serving;
using course_test::watchdog;

namespace {

constexpr const char* an_exception_stops_all =
    "an exception escaped echo_until_eof(), as or_throw() and send_all() throw one, and it would "
    "end "
    "the whole server: how a client's request ended is a value, and ends this client only";

std::string said_by(const std::exception_ptr& escaped) {
  try {
    std::rethrow_exception(escaped);
  } catch (const std::exception& error) {
    return error.what();
  }
}

// One echo on a socket that does not exist: the test answers for the kernel.
struct scripted_echo {
  static constexpr int socket = 77;

  uring::io_context context;
  manual_ring kernel{context};
  bool over = false;
  std::string escaped = "nothing";

  scripted_echo() { context.spawn(run(*this)); }

  // The next request, which must be a recv.
  [[nodiscard]] ::io_uring_sqe take_recv() {
    const ::io_uring_sqe request = kernel.take();
    UNSCOPED_INFO("this is no recv: when everything is sent, receive again");
    REQUIRE(static_cast<int>(request.opcode) == IORING_OP_RECV);
    REQUIRE(request.fd == socket);
    UNSCOPED_INFO("the kernel waits for us; with MSG_DONTWAIT, -EAGAIN would be repeated forever");
    REQUIRE((request.msg_flags & MSG_DONTWAIT) == 0);
    return request;
  }

  [[nodiscard]] ::io_uring_sqe take_send() {
    const ::io_uring_sqe request = kernel.take();
    UNSCOPED_INFO(
        "this is no send: what came is to be sent, and an interrupted send, which has sent "
        "nothing, made again before the next recv");
    REQUIRE(static_cast<int>(request.opcode) == IORING_OP_SEND);
    UNSCOPED_INFO("to a client that has gone this raises SIGPIPE: keep send_op's default flags");
    REQUIRE((request.msg_flags & MSG_NOSIGNAL) != 0);
    return request;
  }

 private:
  static uring::task<> run(scripted_echo& self) {
    const uring::outcome<void> ended =
        co_await uring::echo_until_eof(self.context, socket).as_outcome();
    self.over = true;
    if (ended.error() != nullptr) self.escaped = said_by(ended.error());
  }
};

struct echo_fixture {
  explicit echo_fixture(const uring::ring_options& options = {})
      : echo_fixture{common::listen_on("127.0.0.1", 0), options} {}
  explicit echo_fixture(course_test::tcp_listener listener)
      : echo_fixture{std::move(listener.socket), {}} {}

  common::stop_signal stop;
  std::uint16_t port;
  uring::echo_server loop;

 private:
  echo_fixture(common::unique_fd listener, const uring::ring_options& options)
      : port{course_test::port_of(listener.get())}, loop{std::move(listener), stop, options} {}
};

// At the descriptor limit an accept fails in the very turn in which a client leaves.
class crowded_kernel {
 public:
  crowded_kernel(int client, bool leaves_first) : client_{client}, leaves_first_{leaves_first} {}

  std::vector<course_test::scripted_answer> operator()(
      const std::vector<::io_uring_sqe>& submitted) {
    for (const ::io_uring_sqe& each : submitted) open_.push_back(each);
    switch (++turn_) {
      case 1:
        return {answer(IORING_OP_ACCEPT, client_)};
      case 2: {
        std::vector answers{answer(IORING_OP_RECV, 0), answer(IORING_OP_ACCEPT, -EMFILE)};
        if (!leaves_first_) std::swap(answers[0], answers[1]);
        return answers;
      }
      case 3:
        accepts_then = count(submitted, IORING_OP_ACCEPT);
        timeouts_then = count(submitted, IORING_OP_TIMEOUT);
        return {answer(IORING_OP_POLL_ADD, POLLIN)};  // a stop is asked for
      default:
        return cancel_all();
    }
  }

  std::ptrdiff_t accepts_then = 0;
  std::ptrdiff_t timeouts_then = 0;

 private:
  static std::ptrdiff_t count(const std::vector<::io_uring_sqe>& all, int opcode) {
    return std::ranges::count(all, opcode, &::io_uring_sqe::opcode);
  }

  // The first request of its kind completes.
  course_test::scripted_answer answer(int opcode, std::int32_t res) {
    const auto found = std::ranges::find(open_, opcode, &::io_uring_sqe::opcode);
    REQUIRE(found != open_.end());
    const std::uint64_t user_data = found->user_data;
    open_.erase(found);
    return {.user_data = user_data, .res = res};
  }

  std::vector<course_test::scripted_answer> cancel_all() {
    std::vector<course_test::scripted_answer> answers;
    answers.reserve(open_.size());
    for (const ::io_uring_sqe& each : open_) {
      answers.push_back({.user_data = each.user_data, .res = -ECANCELED});
    }
    open_.clear();
    return answers;
  }

  int client_;
  bool leaves_first_;
  int turn_ = 0;
  std::vector<::io_uring_sqe> open_;
};

}  // namespace

TEST_CASE("07.6 a message is sent back, and then the next one is received", "[07.6]") {
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

TEST_CASE("07.6 a short send goes on where it stopped", "[07.6]") {
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

TEST_CASE("07.6 an interrupted request is made again", "[07.6]") {
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

TEST_CASE("07.6 an interrupted send goes on where the last one stopped", "[07.6]") {
  for (const int error : {EINTR, EAGAIN}) {
    scripted_echo echo;
    echo.kernel.answer(echo.take_recv(), "0123456789");
    echo.kernel.answer(echo.take_send(), 4);
    echo.kernel.answer(echo.take_send(), -error);
    const ::io_uring_sqe send = echo.take_send();
    UNSCOPED_INFO("a send took 4 bytes, and the next completed with -"
                  << common::describe_errno(error)
                  << ": go on with the rest, or the client gets the first bytes twice");
    CHECK(bytes_of(send) == "456789");
    echo.kernel.answer(send, static_cast<std::int32_t>(send.len));
    echo.kernel.answer(echo.take_recv(), 0);
    CHECK(echo.over);
  }
}

TEST_CASE("07.6 the end of a client is the end of its coroutine", "[07.6]") {
  for (const std::int32_t res : {0, -ECONNRESET, -ETIMEDOUT, -ECANCELED}) {
    scripted_echo echo;
    echo.kernel.answer(echo.take_recv(), res);
    UNSCOPED_INFO("recv completed with " << res << ": there will be nothing more");
    REQUIRE(echo.over);
    UNSCOPED_INFO(an_exception_stops_all);
    CHECK(echo.escaped == "nothing");
    CHECK(echo.context.in_flight() == 0);
  }
  for (const std::int32_t res : {-EPIPE, -ECONNRESET, -ECANCELED}) {
    scripted_echo echo;
    echo.kernel.answer(echo.take_recv(), "unwanted");
    echo.kernel.answer(echo.take_send(), res);
    UNSCOPED_INFO("send completed with " << res << ": nobody will read the rest");
    REQUIRE(echo.over);
    UNSCOPED_INFO(an_exception_stops_all);
    CHECK(echo.escaped == "nothing");
  }
}

TEST_CASE("07.6 a message comes back, and so does the next", "[07.6]") {
  const watchdog deadline{10s, "the client was to be served"};
  echo_fixture server;
  const serving loop{server};
  client talker{server.port};
  CHECK(talker.echo("hello") == "hello");
  CHECK(talker.echo("again") == "again");
}

TEST_CASE("07.6 a reader that comes late gets every byte", "[07.6]") {
  const watchdog deadline{15s, "the client was to be served"};
  echo_fixture server{course_test::listen_on_any_port(4096)};  // its clients' sends are short
  const serving loop{server};
  client late{server.port, course_test::short_send_buffers};
  const std::size_t sent =
      course_test::send_until_stalled(late, 2 * course_test::kernel_buffer_bytes_max());
  UNSCOPED_INFO("bytes are missing: the rest of a short send was dropped");
  CHECK(course_test::compare_bytes(late.recv_exactly(sent), course_test::pattern(0, sent)) ==
        identical);
}

TEST_CASE("07 an echo allocates nothing") {
  scripted_echo echo;
  const auto allocations_of = [](auto&& turn) {
    const std::size_t before = course_test::allocations();
    turn();
    return course_test::allocations() - before;
  };
  echo.kernel.answer(echo.take_recv(), "hello");  // the first two completions make the ring's
  echo.kernel.answer(echo.take_send(), 5);        // vectors grow
  // The scripted ring needs memory itself; a message that nobody receives costs that alone.
  const ::io_uring_sqe open = echo.take_recv();
  const std::size_t by_the_script =
      allocations_of([&] { echo.kernel.bring({.word = 2, .value = 0}); });
  echo.kernel.answer(open, "hello");
  echo.kernel.answer(echo.take_send(), 5);
  for (int i = 0; i < 100; ++i) {
    const ::io_uring_sqe recv = echo.take_recv();
    const std::size_t by_recv = allocations_of([&] { echo.kernel.answer(recv, "hello"); });
    const ::io_uring_sqe send = echo.take_send();
    const std::size_t by_send = allocations_of([&] { echo.kernel.answer(send, 5); });
    UNSCOPED_INFO("operations lie in the frame: neither a recv nor a send needs memory of its own");
    REQUIRE(by_recv + by_send == 2 * by_the_script);
  }
  echo.kernel.answer(echo.take_recv(), 0);
}

TEST_CASE("07 clients that leave take their frames and descriptors with them") {
  const watchdog deadline{15s, "the clients were to be served"};
  echo_fixture server;
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
  echo_fixture server{{.sq_entries = 4, .cq_entries = 8}};
  const serving loop{server};
  std::vector<client> clients = course_test::connect_many(server.port, 50);
  const auto messages = course_test::own_messages(clients.size(), 20'000);
  CHECK(course_test::compare_all(course_test::echo_all(clients, messages), messages) == identical);
}

TEST_CASE("07 a server without descriptors accepts again when a client leaves in the same turn") {
  for (const bool leaves_first : {true, false}) {
    course_test::socket_pair sockets = course_test::tcp_pair();
    crowded_kernel kernel{sockets.theirs.release(), leaves_first};
    const course_test::scripted_ring ring{std::ref(kernel)};
    echo_fixture server;
    server.loop.run();
    UNSCOPED_INFO(
        (leaves_first ? "the client left before" : "the client left after")
        << " the accept failed: there is a descriptor now, and no other client may leave");
    CHECK(kernel.accepts_then == 1);
    UNSCOPED_INFO("the timer is for a server whose clients all stay");
    CHECK(kernel.timeouts_then == (leaves_first ? 0 : 1));
    CHECK(server.loop.client_count() == 0);
  }
}

TEST_CASE("07 a server that nobody has run ends with its tasks") {
  const watchdog deadline{5s, "the destructor has to cancel whatever waits"};
  const course_test::fd_scope fds;
  {
    echo_fixture server;
    const client waiting{server.port};
  }
  CHECK(fds.leaked().empty());
}
