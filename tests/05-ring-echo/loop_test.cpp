// SPDX-License-Identifier: MIT
// Task 05.2, and 05.3 at work: the loop with its clients in the test.
#include <fcntl.h>
#include <poll.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "alarms.hpp"
#include "bytes.hpp"
#include "client.hpp"
#include "descriptor_limit.hpp"
#include "eventually.hpp"
#include "fd_scope.hpp"
#include "feature.hpp"
#include "listen.hpp"
#include "process_counts.hpp"
#include "ring.hpp"
#include "ring_echo.hpp"
#include "scripted_ring.hpp"
#include "serving.hpp"
#include "socket_pair.hpp"
#include "stalled_client.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using course_test::client;
using course_test::identical;
using course_test::serving;

namespace {

// The descriptor of this process's one ring.
int ring_fd() {
  for (const auto& [fd, target] : course_test::open_fds()) {
    if (target == "anon_inode:[io_uring]") return fd;
  }
  FAIL("this process has no ring");
  return -1;
}

// Puts a completion of our making into the loop's queue, by IORING_OP_MSG_RING.
void post(const uring::completion& made_up) {
  course_test::require_feature("op_msg_ring");
  const int target = ring_fd();
  uring::ring sender{{.sq_entries = 4}};
  ::io_uring_sqe& sqe = sender.get_sqe();
  ::io_uring_prep_msg_ring(&sqe, target, static_cast<unsigned>(made_up.res), made_up.user_data, 0);
  REQUIRE(sender.submit_and_wait(2000ms) == uring::wake::completions);
  REQUIRE(sender.reap().front().res == 0);
}

// Somebody has a listener there, whether its descriptor is still open or not.
bool is_listening(std::uint16_t port) {
  std::ostringstream wanted;
  wanted << "0100007F:" << std::uppercase << std::hex << std::setw(4) << std::setfill('0') << port;
  std::ifstream sockets{"/proc/net/tcp"};
  for (std::string line; std::getline(sockets, line);) {
    std::istringstream words{line};
    std::string number;
    std::string local;
    std::string remote;
    std::string state;
    words >> number >> local >> remote >> state;
    if (local == wanted.str() && state == "0A") return true;  // TCP_LISTEN
  }
  return false;
}

// The loop and its port, on this thread: a turn handles what has completed, and returns.
struct fixture {
  explicit fixture(const uring::ring_options& options = {})
      : fixture{common::listen_on("127.0.0.1", 0), options} {}
  explicit fixture(course_test::tcp_listener listener) : fixture{std::move(listener.socket), {}} {}

  common::stop_signal stop;
  std::uint16_t port;
  uring::ring_echo loop;

 private:
  fixture(common::unique_fd listener, const uring::ring_options& options)
      : port{course_test::port_of(listener.get())}, loop{std::move(listener), stop, options} {}
};

// A limit of two descriptors lets the loop accept two clients.
void turn_until_two_clients(fixture& server) {
  const course_test::alarms late{5s, 1s};  // they end a turn that nothing else would end
  for (int turns = 0; turns < 10 && late.count() == 0; ++turns) {
    if (server.loop.connection_count() == 2) return;
    server.loop.turn();
  }
  FAIL("two clients are connected, but the loop has "
       << server.loop.connection_count()
       << " connections: are their descriptors still open, and is an accept in flight?");
}

uring::completion accept_ended_with(std::int32_t res) {
  return {uring::pack({uring::operation::accept, {}}), res, 0};
}

uring::completion recv_ended_with(std::int32_t res, const uring::slot_id& whose) {
  return {uring::pack({uring::operation::recv, whose}), res, 0};
}

uring::completion stop_is_requested() {
  return {uring::pack({uring::operation::stop_poll, {}}), POLLIN, 0};
}

// The slot of the first client that a loop accepts.
constexpr uring::slot_id first_client{0, 0};

std::string name_of(uring::operation what) {
  switch (what) {
    case uring::operation::accept:
      return "accept";
    case uring::operation::recv:
      return "recv";
    case uring::operation::send:
      return "send";
    case uring::operation::stop_poll:
      return "stop_poll";
    case uring::operation::cancel:
      return "cancel";
  }
  return "unknown";
}

// The loop, with the test as its kernel: a request ends as the test says, and none is real.
class scripted_server {
 public:
  // Which requests the loop makes because one has ended so, as "recv accept ".
  std::string requested_after(const uring::completion& ended) {
    answers_ = {{ended.user_data, ended.res, ended.flags}};
    server_.loop.turn();
    server_.loop.turn();  // hands over what the first turn has prepared
    return requested_;
  }

  // Whether the loop's last wait was to end by itself.
  [[nodiscard]] bool waits_with_a_limit() const { return kernel_.last_limit().has_value(); }

 private:
  std::string requested_;
  std::vector<course_test::scripted_answer> answers_;
  course_test::scripted_ring kernel_{[this](const std::vector<::io_uring_sqe>& submitted) {
    requested_.clear();
    for (const ::io_uring_sqe& sqe : submitted) {
      requested_ += name_of(uring::unpack(sqe.user_data).what) + " ";
    }
    return std::exchange(answers_, {});
  }};
  fixture server_;
};

}  // namespace

TEST_CASE("05.2 the server receives from a client that it has accepted", "[05.2]") {
  fixture server;
  const client visitor{server.port};
  UNSCOPED_INFO(
      "a crash here means: insert(std::move(connection)) has taken the connection, and the pointer "
      "that you moved from is null. connections_.find(id) has its address");
  const std::size_t before = course_test::open_fd_count();
  server.loop.turn();
  CHECK(server.loop.connection_count() == 1);
  UNSCOPED_INFO(
      "the descriptor was closed at the end of on_accept, where `client` still owned it: move "
      "`client` into the connection");
  CHECK(course_test::open_fd_count() == before + 1);
}

TEST_CASE("05.2 a message comes back, and so does the next", "[05.2]") {
  fixture server;
  const serving loop{server};
  client talker{server.port};
  UNSCOPED_INFO("accept, then recv, then send: is the next request made after each completion?");
  CHECK(talker.echo("hello") == "hello");
  UNSCOPED_INFO("one message came back, the next did not: after a send comes a recv");
  CHECK(talker.echo("again") == "again");
}

TEST_CASE("05.2 a second client is accepted while the first is there", "[05.2]") {
  fixture server;
  const serving loop{server};
  client first{server.port};
  client second{server.port};
  UNSCOPED_INFO("an accept request ends with one client: request the next one");
  CHECK(second.echo("me too") == "me too");
  CHECK(first.echo("still here") == "still here");
}

TEST_CASE("05.2 a client that leaves takes its descriptor with it", "[05.2]") {
  fixture server;
  const course_test::fd_scope fds;
  const serving loop{server};
  for (int i = 0; i < 20; ++i) {
    client visitor{server.port};
    REQUIRE(visitor.echo("x") == "x");
  }
  UNSCOPED_INFO("a connection that wants to be closed must be removed: nothing else owns it");
  CHECK(course_test::eventually(2s, [&] { return fds.leaked().empty(); }));
}

TEST_CASE("05.2 a connection that was removed gets no other request", "[05.2]") {
  scripted_server server;
  course_test::socket_pair sockets = course_test::unix_pair();
  REQUIRE_THAT(server.requested_after(accept_ended_with(sockets.theirs.release())),
               ContainsSubstring("recv"));
  UNSCOPED_INFO(
      "remove() has freed the connection, and then the loop made a request for it: the kernel is "
      "given a buffer that may be somebody else's by now. After remove() comes nothing");
  CHECK(server.requested_after(recv_ended_with(0, first_client)).empty());
}

TEST_CASE("05.3 a client that resets ends no other client", "[05.3]") {
  fixture server{course_test::listen_on_any_port(4096)};
  const serving loop{server};
  client steady{server.port};
  REQUIRE(steady.echo("x") == "x");
  for (int i = 0; i < 2; ++i) {
    client rude{server.port, course_test::small_buffers};
    REQUIRE(course_test::send_until_stalled(rude, 2 * course_test::kernel_buffer_bytes_max()) > 0);
    rude.reset();  // a send for it is in flight
  }
  UNSCOPED_INFO("-ECONNRESET in res is the end of one connection");
  CHECK(steady.echo("still here") == "still here");
}

TEST_CASE("05.2 a late completion does not touch the next client in its slot", "[05.2]") {
  fixture server;
  {
    client ada{server.port};
    server.loop.turn();  // accepts
  }
  server.loop.turn();  // EOF
  REQUIRE(server.loop.connection_count() == 0);
  client bob{server.port};  // gets Ada's descriptor number, and her slot
  server.loop.turn();
  REQUIRE(server.loop.connection_count() == 1);

  post(recv_ended_with(0, first_client));
  UNSCOPED_INFO(
      "Ada is gone, and this is her late EOF: find() gives nullptr, and there is nothing to do");
  server.loop.turn();
  UNSCOPED_INFO("Ada is gone, and her late EOF has closed Bob's connection");
  CHECK(server.loop.connection_count() == 1);
  const serving loop{server};
  CHECK(bob.echo("mine") == "mine");
}

TEST_CASE("05.2 the error of a failed accept is in res, not in errno", "[05.2]") {
  fixture server;
  post(accept_ended_with(-ECONNABORTED));
  errno = EBADF;  // of some earlier call; liburing leaves it alone
  UNSCOPED_INFO(
      "the accept ended with ECONNABORTED, one client's failure, and was taken for the value of "
      "errno: a completion has its error in res, so classify_accept_errno(-res)");
  CHECK_NOTHROW(server.loop.turn());
}

TEST_CASE("05.2 a failed accept of one client is followed by another accept", "[05.2]") {
  for (const int res : {-ECONNABORTED, -EPERM, -EINTR, -EAGAIN}) {
    scripted_server server;
    INFO("accept ended with " << common::describe_errno(res) << ": accept the next, and at once");
    CHECK(server.requested_after(accept_ended_with(res)) == "accept ");
  }
}

TEST_CASE("05.2 a stop cancels the accept that followed a failed one", "[05.2]") {
  scripted_server server;
  REQUIRE(server.requested_after(accept_ended_with(-ECONNABORTED)) == "accept ");
  UNSCOPED_INFO(
      "an accept is in flight, and the stop did not cancel it: arm_accept() notes that there is "
      "one, after a failed accept, too; request_accept() by itself does not");
  CHECK_THAT(server.requested_after(stop_is_requested()), ContainsSubstring("cancel"));
}

TEST_CASE("05.2 a recv that nothing has happened to is repeated", "[05.2]") {
  scripted_server server;
  // The server owns the descriptor from here on.
  const int client = common::check(::open("/dev/null", O_RDWR | O_CLOEXEC), "open /dev/null");
  REQUIRE_THAT(server.requested_after(accept_ended_with(client)), ContainsSubstring("recv"));
  UNSCOPED_INFO(
      "the recv ended with -EAGAIN, which says nothing about the client: on_recv() decides what a "
      "negative res means, and so does on_send(), so pass them every res");
  CHECK(server.requested_after(recv_ended_with(-EAGAIN, first_client)) == "recv ");
}

TEST_CASE("05.2 without a descriptor the loop rests, also when it has no client", "[05.2]") {
  for (const int res : {-EMFILE, -ENFILE, -ENOBUFS, -ENOMEM}) {
    scripted_server server;
    INFO("accept ended with " << common::describe_errno(res));
    INFO(
        "so will the next, and at once, again and again. Another program may have the last "
        "descriptor: always pause_accepting()");
    CHECK(server.requested_after(accept_ended_with(res)).empty());
    CHECK(server.waits_with_a_limit());
  }
}

TEST_CASE("05.2 a broken listener ends the loop", "[05.2]") {
  fixture server;
  post(accept_ended_with(-EBADF));
  UNSCOPED_INFO(
      "listener_broken: no accept can succeed any more, and a server that says nothing would run "
      "on without new clients. Throw, by common::throw_error(res, \"accept\")");
  CHECK_THROWS_AS(server.loop.turn(), std::system_error);
}

TEST_CASE("05.2 out of descriptors the loop pauses accepting until one is free", "[05.2]") {
  fixture server;
  std::vector<client> clients = course_test::connect_many(server.port, 4);
  const course_test::room_for_descriptors two{2};
  turn_until_two_clients(server);
  clients[0].send_all("x");  // so that no turn waits long

  int turns = 0;
  {
    const course_test::alarms late{5s, 1s};  // they end a turn that nothing else would end
    const auto end = std::chrono::steady_clock::now() + 300ms;
    for (; std::chrono::steady_clock::now() < end && turns < 100; ++turns) server.loop.turn();
    UNSCOPED_INFO(
        "the loop neither accepts nor has a time at which to try again, so waiting clients are "
        "never served: pause_accepting() sets that time");
    REQUIRE(late.count() == 0);
  }
  UNSCOPED_INFO("each accept fails with -EMFILE at once: pause_accepting() instead of the next");
  CHECK(turns < 20);

  clients.erase(clients.begin(), clients.begin() + 2);
  const serving loop{server};
  UNSCOPED_INFO("two clients have left: are their places given to the clients that wait?");
  CHECK(clients.back().echo("at last") == "at last");
}

TEST_CASE("05.2 a client that leaves makes room for one that waits, at once", "[05.2]") {
  fixture server;
  std::vector<client> clients = course_test::connect_many(server.port, 5);
  const course_test::room_for_descriptors two{2};
  turn_until_two_clients(server);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(server.loop.connection_count() == 2);
    server.loop.turn();  // the accept fails: the loop rests
    clients[i].shutdown_write();
    server.loop.turn();  // EOF
    REQUIRE(server.loop.connection_count() == 1);
    server.loop.turn();
    UNSCOPED_INFO(
        "a descriptor is free and a client waits, but the loop rests until its time is over: "
        "remove() ends the rest, connections_.erase() alone does not");
    CHECK(server.loop.connection_count() == 2);
  }
}

TEST_CASE("05.2 after a stop no client is let in", "[05.2]") {
  fixture server;
  const client first{server.port};
  server.loop.turn();
  REQUIRE(server.loop.connection_count() == 1);
  REQUIRE(is_listening(server.port));
  server.stop.request();
  server.loop.run();
  UNSCOPED_INFO(
      "the stop did not cancel the accept in flight, which goes on to let clients in: arm_accept() "
      "notes that there is one, request_accept() by itself does not");
  CHECK(course_test::eventually(2s, [&] { return !is_listening(server.port); }));
}

TEST_CASE("05.3 a reader that comes late gets every byte", "[05.3]") {
  fixture server{course_test::listen_on_any_port(4096)};  // its clients' sends are short
  const serving loop{server};
  client late{server.port, course_test::short_send_buffers};
  const std::size_t sent =
      course_test::send_until_stalled(late, 2 * course_test::kernel_buffer_bytes_max());
  UNSCOPED_INFO("bytes are missing: the rest of a short send was dropped");
  CHECK(course_test::compare_bytes(late.recv_exactly(sent), course_test::pattern(0, sent)) ==
        identical);
}

TEST_CASE("05.4 fifty clients are served through a ring with four entries", "[05.4]") {
  fixture server{{.sq_entries = 4, .cq_entries = 8}};
  const serving loop{server};
  std::vector<client> clients = course_test::connect_many(server.port, 50);
  const auto messages = course_test::own_messages(clients.size(), 20'000);
  UNSCOPED_INFO("one turn brings more completions than the submission queue has room for requests");
  CHECK(course_test::compare_all(course_test::echo_all(clients, messages), messages) == identical);
}
