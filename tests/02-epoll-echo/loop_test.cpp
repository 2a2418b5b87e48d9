// SPDX-License-Identifier: MIT
// Tasks 02.1 and 02.4: the loop, one turn at a time, with its clients in the test.
#include "echo_loop.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "allocations.hpp"
#include "bytes.hpp"
#include "client.hpp"
#include "descriptor_limit.hpp"
#include "errors.hpp"
#include "eventually.hpp"
#include "fd_scope.hpp"
#include "logged_by.hpp"
#include "patience.hpp"
#include "refuse_calls.hpp"
#include "scripted_calls.hpp"
#include "serving.hpp"
#include "socket_pair.hpp"
#include "watchdog.hpp"

using namespace std::chrono_literals;
using course_test::client;
using course_test::logged_by;
using course_test::serving;
using course_test::watchdog;

namespace {

// Why a loop has not come back, or has ended, or waits for the wrong event.
constexpr const char* accepts_again_and_again =
    "accept_all() tries again and again: return after pause_accepting(), for a `break` leaves the "
    "switch alone";
constexpr const char* throws_without_descriptors =
    "EMFILE has ended the server. Its clients are not to blame: for out_of_descriptors, call "
    "pause_accepting() and return";
constexpr const char* does_not_come_back =
    "turn() does not come back. Does accept_all() try again and again? It has to return when "
    "nothing is waiting, and to throw when the listener is broken: a `break` leaves the switch "
    "alone. Does a call wait? Sockets need SOCK_NONBLOCK; and epoll_wait() may wait for a client "
    "that got no echo, see the tests of 02.2";
constexpr const char* sends_again_and_again =
    "the loop stays with one client, which does not read: send_or_keep() has to return at EAGAIN";
constexpr const char* epoll_was_not_told =
    "the connection wants EPOLLOUT now, and nothing else: has epoll been told (EPOLL_CTL_MOD)? Ask "
    "wanted_events() before the connection sends, and after: if the answers differ, epoll gets the "
    "new one";
constexpr const char* used_after_erase =
    "epoll_ctl: EBADF? After erase() the connection is gone: use neither it nor its descriptor";

// The loop and its port, on this thread: a turn serves the clients that are ready, and returns.
struct loop_fixture {
  // A small send buffer makes an echo go out in many parts, and is soon full.
  explicit loop_fixture(int send_buffer_bytes = 0)
      : loop_fixture{course_test::listen_on_any_port(send_buffer_bytes).socket} {}

  void turn(const char* cause = does_not_come_back) {
    const watchdog deadline{5s, cause};
    loop.turn();
  }

  // A client that the loop has accepted, as its only one.
  [[nodiscard]] client only_client(const course_test::client_options& options = {}) {
    client peer{port, options};
    turn();
    REQUIRE(loop.connection_count() == 1);
    return peer;
  }

  common::stop_signal stop;
  std::uint16_t port;
  epoll::echo_loop loop;

 private:
  explicit loop_fixture(common::unique_fd listener)
      : port{course_test::port_of(listener.get())}, loop{non_blocking(std::move(listener)), stop} {}

  static common::unique_fd non_blocking(common::unique_fd listener) {
    course_test::set_nonblocking(listener.get());
    return listener;
  }
};

// What epoll was asked for, by descriptor, from /proc/self/fdinfo of the one epoll instance.
std::map<int, unsigned> interest_list() {
  std::map<int, unsigned> interest;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone) != "anon_inode:[eventpoll]") continue;
    std::ifstream info{"/proc/self/fdinfo/" + entry.path().filename().string()};
    for (std::string line; std::getline(info, line);) {
      std::istringstream words{line};
      std::string tfd;
      std::string events;
      int fd = -1;
      unsigned mask = 0;
      if (words >> tfd >> fd >> events >> std::hex >> mask && tfd == "tfd:") interest[fd] = mask;
    }
  }
  return interest;
}

std::size_t watched_for(unsigned events) {
  const auto interest = interest_list();
  return static_cast<std::size_t>(std::ranges::count_if(interest, [&](const auto& entry) {
    return (entry.second & (EPOLLIN | EPOLLOUT)) == events;
  }));
}

bool anybody_is_watched_for(unsigned any_of) {
  return std::ranges::any_of(interest_list(),
                             [=](const auto& entry) { return (entry.second & any_of) != 0; });
}

// The descriptor that listens: the loop has closed none of its own yet.
int listener_in(const std::map<int, unsigned>& interest) {
  const auto found = std::ranges::find_if(interest, [](const auto& entry) {
    int listens = 0;
    ::socklen_t size = sizeof listens;
    const int got = ::getsockopt(entry.first, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size);
    return got == 0 && listens == 1;
  });
  return found == interest.end() ? -1 : found->first;
}

// A turn. What it logs, such as a client that was dropped, is shown by the next check that fails.
void turn_and_tell(loop_fixture& server) {
  const std::string log = logged_by([&] { server.turn(); });
  if (!log.empty()) UNSCOPED_INFO("the log says: " << log);
}

// The client talks and does not read, until the loop has to wait for room.
void talk_until_stalled(client& talker) {
  const std::string much(64 * 1024, 'x');
  UNSCOPED_INFO(epoll_was_not_told);
  REQUIRE(course_test::eventually(10s, [&] {
    (void)talker.send_some(much);
    return watched_for(EPOLLOUT) == 1;
  }));
}

bool listener_is_watched() {
  const auto interest = interest_list();
  const auto found = interest.find(listener_in(interest));
  return found != interest.end() && (found->second & EPOLLIN) != 0;
}

}  // namespace

TEST_CASE("02.4 each client is filed, and watched, under its own descriptor", "[02.4]") {
  loop_fixture server;
  const auto before = interest_list();
  client first{server.port};
  const std::string log = logged_by([&] { server.turn(); });
  UNSCOPED_INFO("the log says: " << (log.empty() ? "nothing" : log));
  UNSCOPED_INFO(
      "a client was accepted and add() has dropped it. If epoll_ctl failed with EBADF: was it "
      "given client.get() after the client had been moved? Keep the number first");
  REQUIRE(server.loop.connection_count() == 1);
  const client second{server.port};
  server.turn();
  const bool two = server.loop.connection_count() == 2;
  first.send_all("x");
  server.turn();
  std::string came;
  (void)course_test::eventually(2s, [&] { return !(came += first.recv_some(1)).empty(); });
  UNSCOPED_INFO(
      "the clients are not filed under their own descriptors, but under 0 or -1: was the number "
      "read after the client had been moved? The order of two arguments is open");
  REQUIRE(two);
  UNSCOPED_INFO("the first client got no echo: are the tests of 02.2 green?");
  CHECK(came == "x");
  CHECK(interest_list().size() == before.size() + 2);
}

TEST_CASE("02.1 one wake-up accepts every client that waits", "[02.1]") {
  loop_fixture server;
  const std::vector<client> clients = course_test::connect_many(server.port, 50);
  turn_and_tell(server);
  UNSCOPED_INFO(
      "accept until it says EAGAIN: one client a wake-up makes the others wait in line. If your "
      "loop does, add() has lost some of them: is each filed under its own number? get() returns "
      "-1 once the client has been moved");
  CHECK(server.loop.connection_count() == 50);
}

TEST_CASE("02.1 a failed accept that concerns one client only is passed over", "[02.1]") {
  loop_fixture server;
  std::vector<client> clients;
  for (const int error : {ECONNABORTED, EPROTO, ENETDOWN, EINTR}) {
    const course_test::failing_accepts failures{error, 1};
    clients.emplace_back(server.port);
    UNSCOPED_INFO("accept failed with " << common::describe_errno(error)
                                        << ", which is about that one client: for "
                                           "accept_failure::try_again take the next one");
    REQUIRE_NOTHROW(server.turn());
    UNSCOPED_INFO("accept failed for one client, and the next one was not accepted");
    REQUIRE(server.loop.connection_count() == clients.size());
  }
}

TEST_CASE("02.1 out of descriptors, the listener is not watched for a while", "[02.1]") {
  loop_fixture server;
  const std::vector<client> clients = course_test::connect_many(server.port, 2);
  {
    const course_test::room_for_descriptors one{1};
    UNSCOPED_INFO(throws_without_descriptors);
    server.turn(accepts_again_and_again);
  }
  REQUIRE(server.loop.connection_count() == 1);
  UNSCOPED_INFO(
      "the listener is still watched, and reports the client that cannot be accepted, again and "
      "again: call pause_accepting(). A sleep instead would make every other client wait");
  CHECK_FALSE(listener_is_watched());
}

TEST_CASE("02.1 any shortage stops the watch on the listener for a while", "[02.1]") {
  for (const int error : {ENFILE, ENOBUFS, ENOMEM}) {
    loop_fixture server;
    const client waiting{server.port};
    const course_test::failing_accepts failures{error};
    UNSCOPED_INFO("accept failed with " << common::describe_errno(error)
                                        << ": ask classify_accept_errno(), which knows them all");
    REQUIRE_NOTHROW(server.turn(accepts_again_and_again));
    UNSCOPED_INFO("accept failed with "
                  << common::describe_errno(error)
                  << ", and the listener is still watched: classify_accept_errno() says "
                     "out_of_descriptors, for which you call pause_accepting()");
    CHECK_FALSE(listener_is_watched());
  }
}

TEST_CASE("02.1 an empty queue does not pause accepting", "[02.1]") {
  loop_fixture server;
  const client peer{server.port};
  server.turn();
  UNSCOPED_INFO(
      "the listener is not watched any more, so the next client waits: EAGAIN is the usual end, "
      "for which accept_all() returns. pause_accepting() is for out_of_descriptors");
  CHECK(listener_is_watched());
}

TEST_CASE("02.1 accepting from an empty queue does not block", "[02.1]") {
  loop_fixture server;
  {
    const client brief{server.port};
    server.turn();  // accepts, finds the queue empty, and comes back
  }
  UNSCOPED_INFO("the loop is stuck in accept() or has stopped at EAGAIN");
  CHECK(server.loop.connection_count() == 1);
}

TEST_CASE("02.4 out of descriptors, the server sleeps until one is free", "[02.4]") {
  loop_fixture server;
  std::vector<client> clients = course_test::connect_many(server.port, 4);
  const course_test::room_for_descriptors two{2};
  UNSCOPED_INFO(throws_without_descriptors);
  server.turn(accepts_again_and_again);
  REQUIRE(server.loop.connection_count() == 2);

  int turns = 0;
  const auto end = std::chrono::steady_clock::now() + 300ms;
  for (; std::chrono::steady_clock::now() < end && turns < 100; ++turns) {
    server.turn(accepts_again_and_again);
  }
  UNSCOPED_INFO(
      "accept() fails with EMFILE, and the listener stays readable: does accept_all() "
      "call pause_accepting()?");
  CHECK(turns < 20);

  clients.erase(clients.begin(), clients.begin() + 2);
  const serving loop{server};
  UNSCOPED_INFO("no client is accepted: does serve() erase the clients that have left?");
  CHECK(clients.back().echo("at last") == "at last");
}

TEST_CASE("02.1 an accepted socket never blocks, and is not handed down to child programs",
          "[02.1]") {
  loop_fixture server;
  const auto before = interest_list();
  const client peer{server.port};
  turn_and_tell(server);
  const auto after = interest_list();
  UNSCOPED_INFO(
      "is the client registered with epoll? If epoll_ctl said EBADF, its descriptor was read after "
      "the client had been moved, and was -1");
  REQUIRE(after.size() == before.size() + 1);
  const auto accepted = std::ranges::find_if_not(
      after, [&](const auto& entry) { return before.contains(entry.first); });
  UNSCOPED_INFO("one client that does not read would stop all: pass SOCK_NONBLOCK to accept4()");
  CHECK((::fcntl(accepted->first, F_GETFL) & O_NONBLOCK) == O_NONBLOCK);
  UNSCOPED_INFO("the socket survives exec(): pass SOCK_CLOEXEC to accept4()");
  CHECK((::fcntl(accepted->first, F_GETFD) & FD_CLOEXEC) == FD_CLOEXEC);
}

TEST_CASE("02.1 out of descriptors, the loop stops accepting and goes on to its other clients",
          "[02.1]") {
  loop_fixture server;
  const std::vector<client> clients = course_test::connect_many(server.port, 3);
  std::optional<course_test::room_for_descriptors> one{std::in_place, 1U};
  std::future<void> turn = std::async(std::launch::async, [&] { server.loop.turn(); });
  const bool returned = turn.wait_for(2s * course_test::patience()) == std::future_status::ready;
  one.reset();  // a loop that tries again and again gets what it wants now, and ends
  UNSCOPED_INFO(throws_without_descriptors);
  REQUIRE_NOTHROW(turn.get());
  UNSCOPED_INFO(accepts_again_and_again);
  CHECK(returned);
}

TEST_CASE("02.1 a broken listener ends the loop with an error", "[02.1]") {
  loop_fixture server;
  const int listener = listener_in(interest_list());
  REQUIRE(listener != -1);
  common::check(::shutdown(listener, SHUT_RD), "shutdown");  // it listens no longer
  UNSCOPED_INFO("accept() fails with EINVAL from now on: common::throw_errno(\"accept\")");
  CHECK_THROWS_AS(server.turn(), std::system_error);
}

TEST_CASE("02.1 a new client is watched for bytes, and only for bytes", "[02.1]") {
  loop_fixture server;
  const client silent{server.port};
  const std::size_t before = watched_for(EPOLLIN);  // the listener and the stop signal
  server.turn();
  UNSCOPED_INFO("the listener was taken out, see \"an empty queue does not pause accepting\"");
  REQUIRE(listener_is_watched());
  UNSCOPED_INFO("is the client in connections_, and registered for EPOLLIN?");
  CHECK(watched_for(EPOLLIN) == before + 1);
  UNSCOPED_INFO("a socket with room reports EPOLLOUT at once, forever");
  CHECK(watched_for(EPOLLIN | EPOLLOUT) == 0);
  UNSCOPED_INFO("EPOLLET and EPOLLONESHOT report bytes once; on_readable() may leave some behind");
  CHECK_FALSE(anybody_is_watched_for(EPOLLET | EPOLLONESHOT));
}

TEST_CASE("02.1 a client that epoll refuses is dropped and closed, and the loop goes on",
          "[02.1]") {
  for (const int error : {ENOSPC, ENOMEM}) {
    loop_fixture server;
    const client refused{server.port};
    const course_test::fd_scope fds;
    UNSCOPED_INFO("epoll_ctl failed with "
                  << common::describe_errno(error)
                  << " for one client, and the whole server ended: catch std::system_error in "
                     "add(), for any errno");
    REQUIRE_NOTHROW(logged_by([&] {
      course_test::refuse_epoll_ctl(EPOLL_CTL_ADD, error);
      server.turn();
    }));
    UNSCOPED_INFO("epoll will never report this client: erase it from connections_");
    REQUIRE(server.loop.connection_count() == 0);
    UNSCOPED_INFO(
        "the client was dropped, and its descriptor is open for good: after release() nobody owns "
        "it, so leave it in a unique_fd until connections_ has it");
    CHECK(fds.leaked() == "");
  }
}

TEST_CASE("02.1 clients that epoll has no room for are dropped, with one line in the log",
          "[02.1]") {
  loop_fixture server;
  std::vector<client> clients = course_test::connect_many(server.port, 3);
  const auto turn_without_room = [&server] {
    course_test::refuse_epoll_ctl(EPOLL_CTL_ADD, ENOSPC);
    server.turn();
  };
  std::string log;
  UNSCOPED_INFO("epoll_ctl failed for one client, and the whole server ended: catch it in add()");
  REQUIRE_NOTHROW(log = logged_by(turn_without_room));
  UNSCOPED_INFO("epoll will never report them: erase them from connections_");
  CHECK(server.loop.connection_count() == 0);
  UNSCOPED_INFO("three were dropped, and a line for the first is enough: see dropping_");
  CHECK(std::ranges::count(log, '\n') == 1);
  UNSCOPED_INFO("the line has to name the reason: what() of the exception does");
  CHECK_THAT(log, Catch::Matchers::ContainsSubstring("ENOSPC"));
  clients.emplace_back(server.port);
  UNSCOPED_INFO(
      "another was dropped, at a later wake-up, and none has fitted meanwhile: one line is enough, "
      "or the log is flooded. dropping_ ends where a client fits, and nowhere else");
  CHECK(logged_by(turn_without_room).empty());

  clients.emplace_back(server.port);
  server.turn();
  UNSCOPED_INFO(
      "there is room again, for the one client that waits. Those that epoll refused were to be "
      "dropped, and accepting goes on without a pause");
  REQUIRE(server.loop.connection_count() == 1);
  clients.emplace_back(server.port);
  UNSCOPED_INFO("one has fitted since then: the next that does not gets a line again");
  CHECK(std::ranges::count(logged_by(turn_without_room), '\n') == 1);
}

TEST_CASE("02.4 a message comes back", "[02.4]") {
  loop_fixture server;
  client talker = server.only_client();
  talker.send_all("hello");
  server.turn();
  UNSCOPED_INFO("serve() has to call on_readable() with scratch_: are the tests of 02.2 green?");
  CHECK(talker.recv_exactly(5) == "hello");
}

TEST_CASE("02.4 bytes that come together with a FIN are echoed", "[02.4]") {
  loop_fixture server;
  client talker = server.only_client();
  talker.send_all("last words");
  talker.shutdown_write();
  REQUIRE(course_test::eventually(2s, [&] { return talker.unacknowledged_bytes() == 0; }));
  server.turn();
  UNSCOPED_INFO(
      "the client has sent its last bytes and still reads. EPOLLRDHUP, EPOLLHUP and EPOLLERR do "
      "not say that all bytes were read: only recv() does, by 0");
  CHECK(talker.recv_exactly(10) == "last words");
}

TEST_CASE("02.4 an echo that was sent at once changes nothing in the interest list", "[02.4]") {
  loop_fixture server;
  client talker = server.only_client();
  talker.send_all("hello");
  UNSCOPED_INFO(
      "epoll_ctl was called, and the client wants what it wanted before: that is one system call "
      "more for each echo. Compare wanted_events() with what it was, and call watch() if it "
      "differs");
  CHECK_NOTHROW(logged_by([&] {
    course_test::refuse_epoll_ctl(EPOLL_CTL_MOD, EPERM);  // so that a needless call throws
    server.turn();
  }));
  CHECK(talker.recv_exactly(5) == "hello");
}

TEST_CASE("02.4 when a client leaves, its descriptor is closed", "[02.4]") {
  loop_fixture server;
  client pulse{server.port};  // gives each turn something to report, so that none blocks forever
  server.turn();
  REQUIRE(server.loop.connection_count() == 1);
  const course_test::fd_scope fds;
  {
    const std::vector<client> clients = course_test::connect_many(server.port, 10);
    server.turn();
    REQUIRE(server.loop.connection_count() == 11);
  }
  for (int turns = 0; turns < 10 && server.loop.connection_count() > 1; ++turns) {
    pulse.send_all("x");
    UNSCOPED_INFO(used_after_erase);
    REQUIRE_NOTHROW(server.turn());
  }
  UNSCOPED_INFO(
      "ten clients have left. If the FIN test of 02.2 is green, on_readable() has said closed for "
      "each, and then it must leave connections_: nothing else owns it");
  CHECK(server.loop.connection_count() == 1);
  CHECK(fds.leaked() == "");
}

TEST_CASE("02.4 a connection is not touched after it was erased", "[02.4]") {
  loop_fixture server;
  std::optional<client> leaving{std::in_place, server.port};
  {
    const course_test::fenced_memory fence;
    server.turn();
  }
  REQUIRE(server.loop.connection_count() == 1);
  leaving.reset();
  UNSCOPED_INFO(
      "SIGSEGV? After erase() the memory of the connection is gone. serve() still uses `client` or "
      "`found`, which refer to it: let erase() be the last thing it does");
  CHECK_NOTHROW(server.turn());
  UNSCOPED_INFO("the client has left: on_readable() says closed, and then serve() erases it");
  CHECK(server.loop.connection_count() == 0);
}

TEST_CASE("02.4 a client that does not read is watched for room until it does", "[02.4]") {
  loop_fixture server{4096};
  client talker = server.only_client({.receive_buffer_bytes = 4096, .send_buffer_bytes = 4096});
  const watchdog deadline{15s, sends_again_and_again};
  const serving loop{server};

  std::string sent;
  UNSCOPED_INFO(epoll_was_not_told);
  REQUIRE(course_test::eventually(10s, [&] {
    const std::string message = course_test::pattern(3, 64 * 1024, sent.size());
    sent.append(message, 0, talker.send_some(message));
    return watched_for(EPOLLOUT) == 1;
  }));
  UNSCOPED_INFO(
      "the client reads, so there is room: serve() has to call on_writable(), and nothing "
      "else, until all kept bytes are sent. See the tests of 02.3, then the test about EPOLLET");
  const std::string received = talker.recv_exactly(sent.size());
  CHECK(course_test::compare_bytes(received, sent) == course_test::identical);
  UNSCOPED_INFO("all was sent: go back to EPOLLIN, or the loop spins on a socket with room");
  CHECK(course_test::eventually(5s, [] { return watched_for(EPOLLOUT) == 0; }));
  UNSCOPED_INFO(used_after_erase);  // should the loop end by it now, when the client leaves
}

TEST_CASE("02.4 a change of interest makes it neither edge-triggered nor one-shot", "[02.4]") {
  loop_fixture server{4096};
  client talker = server.only_client({.receive_buffer_bytes = 4096, .send_buffer_bytes = 4096});
  const watchdog deadline{15s, sends_again_and_again};
  const serving loop{server};
  talk_until_stalled(talker);
  UNSCOPED_INFO(
      "EPOLLET or EPOLLONESHOT with EPOLL_CTL_MOD: epoll reports once that there is room, and "
      "on_writable() may leave bytes behind");
  CHECK_FALSE(anybody_is_watched_for(EPOLLET | EPOLLONESHOT));
  const auto reads_until_epollin = [&] {
    (void)talker.recv_some(64 * 1024);
    return watched_for(EPOLLOUT) == 0;
  };
  UNSCOPED_INFO(
      "the client reads: serve() has to call on_writable(), and to go back to EPOLLIN when all was "
      "sent, or the loop spins on a socket with room");
  REQUIRE(course_test::eventually(10s, reads_until_epollin));
  UNSCOPED_INFO(
      "EPOLLET or EPOLLONESHOT with EPOLL_CTL_MOD: epoll reports bytes once, and one recv() may "
      "leave some behind");
  CHECK_FALSE(anybody_is_watched_for(EPOLLET | EPOLLONESHOT));
  UNSCOPED_INFO(used_after_erase);  // should the loop end by it now, when the client leaves
}

TEST_CASE("02.4 until the last byte of an echo is sent, nothing more is read", "[02.4]") {
  loop_fixture server{4096};
  client talker = server.only_client({.receive_buffer_bytes = 4096});
  const watchdog deadline{15s, sends_again_and_again};
  const serving loop{server};

  const std::string message = course_test::pattern(3, 512 * 1024);
  std::string received;
  UNSCOPED_INFO(
      "if a part is missing: on_writable() may leave bytes unsent, and bytes that are received "
      "then take their place. If the end does not come: epoll was not told of EPOLLOUT, or was "
      "told with EPOLLET");
  for (std::size_t sent = 0; sent < message.size();) {
    const std::size_t taken = talker.send_some(std::string_view{message}.substr(sent));
    sent += taken;
    if (taken == 0) received += talker.recv_exactly(1);  // there is no room: make some
  }
  received += talker.recv_exactly(message.size() - received.size());
  CHECK(course_test::compare_bytes(received, message) == course_test::identical);
  UNSCOPED_INFO(used_after_erase);  // should the loop end by it now, when the client leaves
}

TEST_CASE("02.4 a client that resets with an echo unsent is erased, and no other client",
          "[02.4]") {
  loop_fixture server{4096};
  client steady{server.port};
  client stalled{server.port, {.receive_buffer_bytes = 4096, .send_buffer_bytes = 4096}};
  server.turn();
  REQUIRE(server.loop.connection_count() == 2);
  const watchdog deadline{15s, sends_again_and_again};
  const serving loop{server};
  talk_until_stalled(stalled);
  stalled.reset();
  UNSCOPED_INFO(used_after_erase);
  CHECK(steady.echo("still here") == "still here");
  UNSCOPED_INFO(used_after_erase);  // the reset may come in only now
  CHECK(course_test::eventually(5s, [] { return watched_for(EPOLLOUT) == 0; }));
}

TEST_CASE("02.4 a client whose kept bytes cannot be sent is erased, and the loop goes on",
          "[02.4]") {
  loop_fixture server{4096};
  client talker = server.only_client({.receive_buffer_bytes = 4096, .send_buffer_bytes = 4096});
  {
    const watchdog deadline{15s, sends_again_and_again};
    const serving loop{server};
    talk_until_stalled(talker);
  }
  while (!talker.recv_some(4096).empty()) continue;  // so there will be room
  UNSCOPED_INFO("send() failed with ENOBUFS for one client, and the whole server ended");
  REQUIRE_NOTHROW(logged_by([&] {
    course_test::refuse_send(ENOBUFS);
    server.turn();
  }));
  UNSCOPED_INFO(
      "on_writable() said closed, because the kept bytes cannot be sent: erase the connection, as "
      "after on_readable(), or the echo goes on without them");
  CHECK(server.loop.connection_count() == 0);
}

TEST_CASE("02.4 a stop closes every client and ends the loop", "[02.4]") {
  loop_fixture server;
  std::vector<client> clients = course_test::connect_many(server.port, 3);
  server.turn();
  clients.front().send_all("last words");
  server.stop.request();
  server.loop.run();
  CHECK(server.loop.connection_count() == 0);
  CHECK(clients.front().recv_until_eof() == "last words");
}

TEST_CASE("02.4 after a stop, a client that was slow gets the echo of all that has arrived",
          "[02.4]") {
  loop_fixture server{4096};
  client talker = server.only_client({.receive_buffer_bytes = 4096});
  std::string sent;
  const auto arrives = [&](std::size_t bytes) {
    const std::string message = course_test::pattern(3, bytes, sent.size());
    talker.send_all(message);
    sent += message;
    return course_test::eventually(5s, [&] { return talker.unacknowledged_bytes() == 0; });
  };
  while (watched_for(EPOLLOUT) == 0) {
    UNSCOPED_INFO(epoll_was_not_told);
    REQUIRE((arrives(16 * 1024) && sent.size() < 1024 * 1024));
    server.turn(sends_again_and_again);
  }
  REQUIRE(arrives(1024));  // and stays unread, behind what is unsent

  server.stop.request();
  std::string received;
  UNSCOPED_INFO(
      "the client reads, and all has arrived: in the end recv() returns 0, and serve() erases the "
      "connection");
  REQUIRE(course_test::eventually(10s, [&] {
    received += talker.recv_some(sent.size());
    server.turn();
    return server.loop.connection_count() == 0;
  }));
  UNSCOPED_INFO(
      "after the stop, a connection was erased with bytes unsent or unread. A stop is no reason to "
      "erase: what has arrived is still echoed, until the connection says closed");
  REQUIRE_NOTHROW(received += talker.recv_exactly(sent.size() - received.size()));
  UNSCOPED_INFO("as many bytes came back as were sent, and not the same: see the tests of 02.3");
  CHECK(course_test::compare_bytes(received, sent) == course_test::identical);
  UNSCOPED_INFO("all was echoed, and the server's FIN did not follow");
  CHECK(talker.wait_for_end() == course_test::ending::eof);
}
