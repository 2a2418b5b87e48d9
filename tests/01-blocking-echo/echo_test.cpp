// SPDX-License-Identifier: MIT
// Tasks 01.2 and 01.3: sending all of it, and echoing until the peer is done.
#include "echo.hpp"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/time.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <csignal>
#include <string>

#include "background.hpp"
#include "bytes.hpp"
#include "enum_names.hpp"
#include "errors.hpp"
#include "eventually.hpp"
#include "refuse_calls.hpp"
#include "scripted_calls.hpp"
#include "socket_pair.hpp"

using namespace std::chrono_literals;
using course_test::background;
using course_test::bytes_of;
using course_test::compare_bytes;
using course_test::identical;
using course_test::pattern;
using course_test::tcp_pair;
using course_test::unix_pair;

namespace {

constexpr std::size_t more_than_any_buffer_bytes = 8 * 1024 * 1024;

bool readable_within(int socket, std::chrono::milliseconds deadline) {
  ::pollfd waiting{.fd = socket, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, static_cast<int>(deadline.count())) == 1;
}

// Reads until `expected` bytes, EOF, an error, or a second without any.
std::string read_up_to(int socket, std::size_t expected) {
  std::string received;
  std::string chunk(64 * 1024, '\0');
  while (received.size() < expected && readable_within(socket, 1s)) {
    const ::ssize_t got = ::recv(socket, chunk.data(), chunk.size(), 0);
    if (got <= 0) break;
    received.append(chunk, 0, static_cast<std::size_t>(got));
  }
  return received;
}

std::size_t unread_bytes(int socket) {
  int waiting = 0;
  common::check(::ioctl(socket, FIONREAD, &waiting), "ioctl FIONREAD");
  return static_cast<std::size_t>(waiting);
}

// Bytes that the kernel has taken and not put on the wire yet.
std::size_t held_back_bytes(int socket) {
  int waiting = 0;
  common::check(::ioctl(socket, SIOCOUTQNSD, &waiting), "ioctl SIOCOUTQNSD");
  return static_cast<std::size_t>(waiting);
}

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) != -1;
}

void fill(int socket) {
  const std::string chunk(4096, 'f');
  while (::send(socket, chunk.data(), chunk.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
}

// A blocking call that has waited this long fails with EAGAIN.
void limit_waits(int socket, int option) {
  const ::timeval limit{.tv_sec = 0, .tv_usec = 20'000};
  common::check(::setsockopt(socket, SOL_SOCKET, option, &limit, sizeof limit), "setsockopt");
}

struct send_outcome {
  blocking::sent result;
  int error;  // errno behind sent::failed
};

background<send_outcome> send_in_background(int socket, const std::string& message,
                                            int errno_before = 0) {
  return {socket, [socket, &message, errno_before] {
            errno = errno_before;
            const blocking::sent result = blocking::send_all(socket, bytes_of(message));
            return send_outcome{result, errno};
          }};
}

std::string why_not_all(const send_outcome& outcome) {
  if (outcome.result == blocking::sent::all) return "";
  if (outcome.error == 0) {
    return "send_all gave up, and no send() failed: one that took only a part is no failure. Go on "
           "from where it stopped";
  }
  if (outcome.error == EAGAIN) {
    return "send_all gave up with EAGAIN: there was no room, and this send() was told not to wait "
           "for any. Leave MSG_DONTWAIT out";
  }
  if (outcome.error != EINTR) {
    return "send_all gave up with " + common::describe_errno(outcome.error) +
           ", and the peer reads";
  }
  return "send_all gave up with EINTR: a signal interrupted send() before any byte went out, which "
         "says nothing about the peer; call it again";
}

constexpr const char* rest_not_sent =
    "send() returned less than it was given, and the rest was never sent: go on from where it "
    "stopped";
constexpr const char* sent_twice =
    "as many bytes came as were sent, or more, but not the same: some went out twice. After each "
    "send() go on from where it stopped, with no more than is left, and at -1 stay where you are";
constexpr const char* send_hangs =
    "send_all has not returned, and all that it was given has been read: does its loop end when "
    "nothing is left?";
constexpr const char* echo_hangs =
    "echo_until_eof has not returned: after the peer's FIN recv() returns 0, at once and forever. "
    "Does 0 end the loop?";

constexpr const char* closed =
    "send_all or echo_until_eof has closed a descriptor that its caller closes again, and by then "
    "the number may be another client's. Neither closes it, however the conversation ends";

constexpr const char* ended_early =
    "echo_until_eof has returned, and the peer has more to say: a short recv() is not the end. "
    "With MSG_DONTWAIT recv() fails with EAGAIN where it should sleep";

std::string usual_cause(const std::string& received, const std::string& message) {
  if (received.size() > message.size())
    return "echo what this recv() brought, not the whole buffer";
  if (received.size() < message.size()) return "not all bytes that came were sent back";
  return "as many bytes came back as were sent, but not the same";
}

}  // namespace

TEST_CASE("01.2 send_all sends more than all buffers hold", "[01.2]") {
  const course_test::socket_pair sockets = tcp_pair();
  const std::string message = pattern(1, more_than_any_buffer_bytes);
  auto sending = send_in_background(sockets.theirs.get(), message);
  const std::string received = read_up_to(sockets.ours.get(), message.size());
  UNSCOPED_INFO(send_hangs);
  REQUIRE(sending.finished());
  const send_outcome outcome = sending.get();
  UNSCOPED_INFO(why_not_all(outcome));
  CHECK(outcome.result == blocking::sent::all);
  CHECK(compare_bytes(received, message) == identical);
}

TEST_CASE("01.2 a short send is continued where it stopped", "[01.2]") {
  const course_test::socket_pair sockets = unix_pair({.send_buffer_bytes = 4096});
  const std::string message = pattern(1, 1024 * 1024);
  auto sending = send_in_background(sockets.theirs.get(), message);
  // The sender waits for room with part of the message sent: a signal then makes its send() return
  // that part, or -1 with EINTR if nothing of this call went out yet.
  std::string received;
  std::string chunk(8 * 1024, '\0');
  while (received.size() < message.size() && readable_within(sockets.ours.get(), 1s)) {
    sending.interrupt_now();
    const ::ssize_t got = ::recv(sockets.ours.get(), chunk.data(), chunk.size(), 0);
    if (got <= 0) break;
    received.append(chunk, 0, static_cast<std::size_t>(got));
  }
  const std::string verdict = compare_bytes(received, message);
  const char* const cause = received.size() < message.size() ? rest_not_sent : sent_twice;
  UNSCOPED_INFO((verdict == identical ? send_hangs : cause));
  REQUIRE(sending.finished());
  const send_outcome outcome = sending.get();
  UNSCOPED_INFO(why_not_all(outcome));
  REQUIRE(outcome.result == blocking::sent::all);
  UNSCOPED_INFO(cause);
  REQUIRE(verdict == identical);

  course_test::socket_pair leaving = unix_pair({.send_buffer_bytes = 4096});
  auto unfinished = send_in_background(leaving.theirs.get(), message);
  REQUIRE(!read_up_to(leaving.ours.get(), 1).empty());
  leaving.ours.reset();
  UNSCOPED_INFO("send_all has not returned, and its peer is gone: only EINTR is worth another try");
  REQUIRE(unfinished.finished(2s));
  UNSCOPED_INFO(
      "some bytes went out, and the send() after that failed: sent::all promises every byte, so "
      "this is sent::failed");
  CHECK(unfinished.get().result == blocking::sent::failed);
}

TEST_CASE("01.2 a signal before any byte went out is no failure", "[01.2]") {
  const course_test::socket_pair sockets = unix_pair({.send_buffer_bytes = 4096});
  fill(sockets.theirs.get());
  const std::size_t filled = unread_bytes(sockets.ours.get());
  const std::string message = "after the signal";
  auto sending = send_in_background(sockets.theirs.get(), message);
  sending.interrupt();  // its send() waits for room, and none of this message has any
  REQUIRE(read_up_to(sockets.ours.get(), filled).size() == filled);
  UNSCOPED_INFO(send_hangs);
  REQUIRE(sending.finished());
  const send_outcome outcome = sending.get();
  UNSCOPED_INFO(why_not_all(outcome));
  REQUIRE(outcome.result == blocking::sent::all);
  CHECK(read_up_to(sockets.ours.get(), message.size()) == message);
}

TEST_CASE("01.2 an errno that an earlier call left has no effect", "[01.2]") {
  const std::string message = "once";
  for (const int left : {EINTR, EPIPE, ECONNRESET, EAGAIN}) {
    const course_test::socket_pair sockets = unix_pair();
    auto sending = send_in_background(sockets.theirs.get(), message, left);
    const std::string stale_errno = "errno was still " + common::describe_errno(left) +
                                    " from an earlier call, and each send() succeeded: only -1 "
                                    "sets errno, so look at it after -1 alone";
    UNSCOPED_INFO("send_all has not returned. " << stale_errno);
    REQUIRE(sending.finished(2s));
    UNSCOPED_INFO(stale_errno);
    CHECK(sending.get().result == blocking::sent::all);
    UNSCOPED_INFO("some bytes went out twice. " << stale_errno);
    CHECK(unread_bytes(sockets.ours.get()) == message.size());
  }
}

TEST_CASE("01.2 a send to a peer that is gone fails, without SIGPIPE", "[01.2]") {
  static volatile std::sig_atomic_t sigpipes = 0;
  void (*const count_sigpipe)(int) = [](int) { sigpipes = sigpipes + 1; };
  const auto previous = std::signal(SIGPIPE, count_sigpipe);
  course_test::socket_pair sockets = unix_pair();
  sockets.ours.reset();
  const std::string message = "anyone?";
  auto sending = send_in_background(sockets.theirs.get(), message);
  UNSCOPED_INFO(
      "send_all has not returned: send() fails with EPIPE each time. Only EINTR is worth another "
      "try");
  REQUIRE(sending.finished(2s));
  UNSCOPED_INFO("send() failed with EPIPE: the peer is gone, so say sent::failed");
  CHECK(sending.get().result == blocking::sent::failed);
  UNSCOPED_INFO(closed);
  CHECK(is_open(sockets.theirs.get()));
  const auto left_behind = std::signal(SIGPIPE, previous);
  UNSCOPED_INFO(
      "send_all has changed what SIGPIPE does in the whole process, which is not its to decide: "
      "pass MSG_NOSIGNAL to send()");
  CHECK(left_behind == count_sigpipe);
  UNSCOPED_INFO(
      "SIGPIPE was raised, and its default ends the process: pass MSG_NOSIGNAL to send()");
  CHECK(sigpipes == 0);
}

TEST_CASE("01.2 a send that fails for any reason but a signal is not tried again", "[01.2]") {
  const common::unique_fd unconnected{
      common::check(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")};
  const std::string message = "anyone?";
  auto sending = send_in_background(unconnected.get(), message);
  UNSCOPED_INFO(
      "send_all has not returned: send() fails with ENOTCONN each time. A list of errors that end "
      "the loop misses some, so turn it around: only EINTR is worth another try");
  REQUIRE(sending.finished(2s));
  UNSCOPED_INFO("send() failed with ENOTCONN, and no byte went out: say sent::failed");
  CHECK(sending.get().result == blocking::sent::failed);
}

TEST_CASE("01.2 a send for which the kernel has no memory is not tried again", "[01.2]") {
  const std::string message = "anyone?";
  for (const int error : {ENOBUFS, ENOMEM}) {
    const course_test::socket_pair sockets = unix_pair();
    background<blocking::sent> sending{sockets.theirs.get(), [&] {
                                         course_test::refuse_send(error);
                                         return blocking::send_all(sockets.theirs.get(),
                                                                   bytes_of(message));
                                       }};
    const bool returned = sending.finished(2s);
    UNSCOPED_INFO("send_all has not returned: send() fails with "
                  << common::describe_errno(error)
                  << " each time, and nothing says for how long. Only EINTR is worth another try");
    REQUIRE(returned);
    UNSCOPED_INFO("send() failed with " << common::describe_errno(error)
                                        << ", and no byte went out: say sent::failed");
    CHECK(sending.get() == blocking::sent::failed);
  }
}

TEST_CASE("01.2 a send that has waited as long as its socket allows is a failure", "[01.2]") {
  const course_test::socket_pair sockets = unix_pair({.send_buffer_bytes = 4096});
  limit_waits(sockets.theirs.get(), SO_SNDTIMEO);
  fill(sockets.theirs.get());
  const std::string message = "is there ever room?";
  auto sending = send_in_background(sockets.theirs.get(), message);
  UNSCOPED_INFO(
      "send_all has not returned: send() fails with EAGAIN each time the socket's SO_SNDTIMEO has "
      "passed, and the peer may never read. Only EINTR is worth another try");
  REQUIRE(sending.finished(2s));
  UNSCOPED_INFO("send() failed with EAGAIN, and no byte went out: say sent::failed");
  CHECK(sending.get().result == blocking::sent::failed);
}

TEST_CASE("01.2 a small message goes out at once", "[01.2]") {
  const std::string message = "small";
  for (int round = 0; round < 3; ++round) {
    const course_test::socket_pair sockets = tcp_pair();
    background<std::size_t> sending{sockets.theirs.get(), [&] {
                                      (void)blocking::send_all(sockets.theirs.get(),
                                                               bytes_of(message));
                                      return held_back_bytes(sockets.theirs.get());
                                    }};
    UNSCOPED_INFO(send_hangs);
    REQUIRE(sending.finished(2s));
    UNSCOPED_INFO(
        "send_all has returned, and the kernel holds the bytes back: MSG_MORE promises that more "
        "will follow, so it waits for that. Pass MSG_NOSIGNAL alone");
    REQUIRE(sending.get() == 0);
  }
}

TEST_CASE("01.2 after send_all its caller can send more", "[01.2]") {
  const course_test::socket_pair sockets = unix_pair();
  for (const std::string message : {"first", "second"}) {
    auto sending = send_in_background(sockets.theirs.get(), message);
    UNSCOPED_INFO(send_hangs);
    REQUIRE(sending.finished(2s));
    UNSCOPED_INFO(
        "the second send_all on this socket failed: has the first one shut it down? Its caller may "
        "have more to send, and decides when the stream ends");
    REQUIRE(sending.get().result == blocking::sent::all);
    CHECK(read_up_to(sockets.ours.get(), message.size()) == message);
  }
}

TEST_CASE("01.2 an empty message is sent, however the loop is written", "[01.2]") {
  const course_test::socket_pair sockets = unix_pair();
  const std::string message;
  auto sending = send_in_background(sockets.theirs.get(), message);
  UNSCOPED_INFO(send_hangs);
  REQUIRE(sending.finished(2s));
  UNSCOPED_INFO(
      "send_all was given no bytes, so all of them are sent: ask whether `data` is empty before "
      "each send(), the first one, too");
  CHECK(sending.get().result == blocking::sent::all);
}

TEST_CASE("01.2 a send that waits for room holds up no other send", "[01.2]") {
  const course_test::socket_pair full = unix_pair({.send_buffer_bytes = 4096});
  const course_test::socket_pair free = unix_pair();
  const std::string large = pattern(3, 1024 * 1024);
  const std::string small = "small";
  auto waiting = send_in_background(full.theirs.get(), large);
  const bool under_way = readable_within(full.ours.get(), 2s);  // and nobody will read on
  auto beside = send_in_background(free.theirs.get(), small);
  const bool held_up = !beside.finished(2s);
  ::shutdown(full.theirs.get(), SHUT_RDWR);  // ends the send that waits, and what waits for it
  UNSCOPED_INFO(
      "one send_all waits for a client that does not read, and so does another on another socket: "
      "is there a lock or a static object that all sends share? Each send needs nothing but its "
      "own socket");
  REQUIRE_FALSE(held_up);
  CHECK(beside.get().result == blocking::sent::all);
  CHECK(under_way);
}

TEST_CASE("01.3 one byte is echoed while the peer waits for it", "[01.3]") {
  const course_test::socket_pair sockets = tcp_pair();
  background<blocking::ending> echoing{
      sockets.theirs.get(), [&] { return blocking::echo_until_eof(sockets.theirs.get()); }};
  REQUIRE(blocking::send_all(sockets.ours.get(), bytes_of("x")) == blocking::sent::all);
  const std::string received = read_up_to(sockets.ours.get(), 1);
  constexpr const char* no_echo =
      "the byte has arrived, and no echo comes: send back what one recv() brought before you call "
      "the next. Does recv() wait until its buffer is full? Without MSG_WAITALL it returns what "
      "there is";
  UNSCOPED_INFO((echoing.running() ? no_echo : ended_early));
  REQUIRE(received == "x");
}

TEST_CASE("01.3 bytes come back in the order in which they were sent", "[01.3]") {
  const course_test::socket_pair sockets = tcp_pair();
  background<blocking::ending> echoing{
      sockets.theirs.get(), [&] { return blocking::echo_until_eof(sockets.theirs.get()); }};
  for (const std::size_t bytes : {1U, 100U, 3U, 16U * 1024U, 2U, 40'000U}) {
    const std::string message = pattern(static_cast<unsigned>(bytes), bytes);
    REQUIRE(blocking::send_all(sockets.ours.get(), bytes_of(message)) == blocking::sent::all);
    const std::string received = read_up_to(sockets.ours.get(), bytes);
    UNSCOPED_INFO((echoing.running() ? usual_cause(received, message) : ended_early));
    REQUIRE(compare_bytes(received, message) == identical);
  }
  UNSCOPED_INFO("more came back than was sent");
  CHECK(unread_bytes(sockets.ours.get()) == 0);
}

TEST_CASE("01.3 two conversations at once do not share a buffer", "[01.3]") {
  constexpr std::size_t bytes = blocking::buffer_bytes;
  const std::string first_message(bytes, '1');
  const std::string second_message(bytes, '2');
  // The first echo does not fit, so its send() waits with a part of the buffer still to go.
  const course_test::socket_pair first = unix_pair({.send_buffer_bytes = 4096});
  const course_test::socket_pair second = unix_pair();
  REQUIRE(blocking::send_all(first.ours.get(), bytes_of(first_message)) == blocking::sent::all);
  REQUIRE(blocking::send_all(second.ours.get(), bytes_of(second_message)) == blocking::sent::all);
  background<blocking::ending> waiting{
      first.theirs.get(), [&] { return blocking::echo_until_eof(first.theirs.get()); }};
  REQUIRE(readable_within(first.ours.get(), 2s));

  background<blocking::ending> beside{
      second.theirs.get(), [&] { return blocking::echo_until_eof(second.theirs.get()); }};
  UNSCOPED_INFO(
      "the echo to the first peer waits for room, and the second peer has no echo or a wrong one: "
      "is there a lock or a static object that all conversations share?");
  CHECK(read_up_to(second.ours.get(), bytes) == second_message);
  UNSCOPED_INFO(
      "bytes of another conversation were echoed: is the buffer static? Each call of "
      "echo_until_eof needs one of its own, on its thread's stack");
  CHECK(read_up_to(first.ours.get(), bytes) == first_message);
}

TEST_CASE("01.3 an echo as large as the buffer takes one recv and one send", "[01.3]") {
  // On a socket of this type what a recv() has no room for is lost, and two sends stay two.
  std::array<int, 2> ends{};
  common::check(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
  const course_test::socket_pair sockets{common::unique_fd{ends[0]}, common::unique_fd{ends[1]}};
  const std::string message = pattern(9, blocking::buffer_bytes);
  REQUIRE(blocking::send_all(sockets.ours.get(), bytes_of(message)) == blocking::sent::all);
  background<blocking::ending> echoing{
      sockets.theirs.get(), [&] { return blocking::echo_until_eof(sockets.theirs.get()); }};
  const std::string received = read_up_to(sockets.ours.get(), 1);
  UNSCOPED_INFO(
      "16 KiB had arrived, and this is how many of them one recv() and one send() echoed: give "
      "recv() the length of the whole buffer, buffer.size(), and send_all all that it brought. "
      "`sizeof` of a pointer is 8");
  CHECK(received.size() == message.size());
}

TEST_CASE("01.3 an echo that goes out in parts is sent to its end", "[01.3]") {
  const std::string message = pattern(5, blocking::buffer_bytes);
  const course_test::socket_pair sockets = unix_pair({.send_buffer_bytes = 4096});
  REQUIRE(blocking::send_all(sockets.ours.get(), bytes_of(message)) == blocking::sent::all);
  background<blocking::ending> echoing{
      sockets.theirs.get(), [&] { return blocking::echo_until_eof(sockets.theirs.get()); }};
  REQUIRE(readable_within(sockets.ours.get(), 2s));
  echoing.interrupt();  // the send() of the echo waits with a part of it sent, and returns the size
  const std::string received = read_up_to(sockets.ours.get(), message.size());
  constexpr const char* rest_not_echoed =
      "a signal made the echo's send() return with a part of it sent, and the rest never went out: "
      "send the echo with send_all, which goes on from there";
  UNSCOPED_INFO((received.size() < message.size() ? rest_not_echoed : sent_twice));
  CHECK(compare_bytes(received, message) == identical);
}

TEST_CASE("01.3 bytes that arrived before the FIN are echoed before the end", "[01.3]") {
  const course_test::socket_pair sockets = tcp_pair();
  const std::string message = pattern(7, 100'000);
  REQUIRE(blocking::send_all(sockets.ours.get(), bytes_of(message)) == blocking::sent::all);
  ::shutdown(sockets.ours.get(), SHUT_WR);
  background<blocking::ending> echoing{
      sockets.theirs.get(), [&] { return blocking::echo_until_eof(sockets.theirs.get()); }};
  const std::string received = read_up_to(sockets.ours.get(), message.size());
  UNSCOPED_INFO(usual_cause(received, message));
  CHECK(compare_bytes(received, message) == identical);
  UNSCOPED_INFO(echo_hangs);
  REQUIRE(echoing.finished(2s));
  UNSCOPED_INFO("recv() returning 0 is the peer's FIN, an orderly end: peer_finished");
  CHECK(echoing.get() == blocking::ending::peer_finished);
}

TEST_CASE("01.3 the descriptor is the caller's to close", "[01.3]") {
  course_test::socket_pair sockets = tcp_pair();
  sockets.ours.reset();
  UNSCOPED_INFO("recv() returning 0 is the peer's FIN, an orderly end: peer_finished");
  CHECK(blocking::echo_until_eof(sockets.theirs.get()) == blocking::ending::peer_finished);
  UNSCOPED_INFO(closed);
  CHECK(is_open(sockets.theirs.get()));
}

TEST_CASE("01.3 a reset ends the conversation as peer_gone", "[01.3]") {
  course_test::socket_pair sockets = tcp_pair();
  background<blocking::ending> echoing{
      sockets.theirs.get(), [&] { return blocking::echo_until_eof(sockets.theirs.get()); }};
  course_test::reset_on_close(sockets.ours.get());
  sockets.ours.reset();
  UNSCOPED_INFO(
      "echo_until_eof has not returned: recv() failed with ECONNRESET, or returns 0 ever after. "
      "Only EINTR is worth another try");
  REQUIRE(echoing.finished(2s));
  UNSCOPED_INFO("recv() returned -1 with ECONNRESET: the peer is gone, and nothing threw");
  CHECK(echoing.get() == blocking::ending::peer_gone);
  UNSCOPED_INFO(closed);
  CHECK(is_open(sockets.theirs.get()));
}

TEST_CASE("01.3 any failure of recv but a signal is peer_gone, and not only a reset", "[01.3]") {
  const common::unique_fd unconnected{
      common::check(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")};
  background<blocking::ending> echoing{unconnected.get(),
                                       [&] { return blocking::echo_until_eof(unconnected.get()); }};
  UNSCOPED_INFO(
      "echo_until_eof has not returned: recv() fails with ENOTCONN each time. Only EINTR is worth "
      "another try");
  REQUIRE(echoing.finished(2s));
  UNSCOPED_INFO(
      "recv() returned -1 with ENOTCONN, and no FIN came: only 0 is peer_finished, whatever errno "
      "says after -1");
  CHECK(echoing.get() == blocking::ending::peer_gone);
}

TEST_CASE("01.3 a peer that is silent for longer than its socket allows is gone", "[01.3]") {
  const course_test::socket_pair sockets = unix_pair();
  limit_waits(sockets.theirs.get(), SO_RCVTIMEO);
  background<blocking::ending> echoing{
      sockets.theirs.get(), [&] { return blocking::echo_until_eof(sockets.theirs.get()); }};
  UNSCOPED_INFO(
      "echo_until_eof has not returned: recv() fails with EAGAIN each time the socket's "
      "SO_RCVTIMEO has passed, and only EINTR is worth another try. Or does a poll() wait before "
      "recv()? recv() itself sleeps");
  REQUIRE(echoing.finished(2s));
  UNSCOPED_INFO("recv() returned -1 with EAGAIN, and no FIN came: only 0 is peer_finished");
  CHECK(echoing.get() == blocking::ending::peer_gone);
}

TEST_CASE("01.3 an errno that an earlier call left has no effect", "[01.3]") {
  for (const int left : {EINTR, ECONNRESET, EPIPE, EAGAIN, ENOTCONN}) {
    const course_test::socket_pair sockets = tcp_pair();
    REQUIRE(blocking::send_all(sockets.ours.get(), bytes_of("x")) == blocking::sent::all);
    ::shutdown(sockets.ours.get(), SHUT_WR);
    background<blocking::ending> echoing{sockets.theirs.get(), [&] {
                                           errno = left;
                                           return blocking::echo_until_eof(sockets.theirs.get());
                                         }};
    const std::string stale_errno =
        "recv() returned a byte and then 0, the peer's FIN, while errno was still " +
        common::describe_errno(left) +
        " from an earlier call: only -1 sets errno, so look at it after -1 alone";
    UNSCOPED_INFO("echo_until_eof has not returned. " << stale_errno);
    REQUIRE(echoing.finished(2s));
    UNSCOPED_INFO(stale_errno);
    CHECK(echoing.get() == blocking::ending::peer_finished);
    UNSCOPED_INFO("the byte was not echoed. " << stale_errno);
    CHECK(read_up_to(sockets.ours.get(), 1) == "x");
  }
}

TEST_CASE("01.3 a peer that takes no more echoes is gone, even if it still sends", "[01.3]") {
  const course_test::socket_pair sockets = unix_pair();
  ::shutdown(sockets.ours.get(), SHUT_RD);  // its direction to us stays open
  const std::string message = "no answer, please";
  REQUIRE(blocking::send_all(sockets.ours.get(), bytes_of(message)) == blocking::sent::all);
  background<blocking::ending> echoing{
      sockets.theirs.get(), [&] { return blocking::echo_until_eof(sockets.theirs.get()); }};
  UNSCOPED_INFO(
      "send_all failed, and echo_until_eof went back to recv(): look at what send_all returns");
  REQUIRE(echoing.finished(2s));
  UNSCOPED_INFO("send_all failed: nothing more can be delivered, so peer_gone");
  CHECK(echoing.get() == blocking::ending::peer_gone);
  UNSCOPED_INFO(closed);
  CHECK(is_open(sockets.theirs.get()));
}

TEST_CASE("01.3 a signal during recv does not end the conversation", "[01.3]") {
  const course_test::socket_pair sockets = tcp_pair();
  background<blocking::ending> echoing{
      sockets.theirs.get(), [&] { return blocking::echo_until_eof(sockets.theirs.get()); }};
  for (const std::string message : {"still there?", "and now?", "now, too?"}) {
    echoing.interrupt();
    CHECK(blocking::send_all(sockets.ours.get(), bytes_of(message)) == blocking::sent::all);
    const std::string received = read_up_to(sockets.ours.get(), message.size());
    UNSCOPED_INFO((received.size() >= message.size()
                       ? "after a signal bytes came back that had come back before, or that nobody "
                         "sent: recv() returned -1 with EINTR, so it brought nothing to echo. Go "
                         "back to recv(), and take no -1 for a count"
                       : "recv() returned -1 with EINTR, which says nothing about the peer: call "
                         "it again"));
    REQUIRE(received == message);
  }
}

TEST_CASE("01.3 a signal during recv costs no memory, nor does an echo", "[01.3]") {
  const course_test::socket_pair sockets = tcp_pair();
  background<blocking::ending> echoing{
      sockets.theirs.get(), [&] { return blocking::echo_until_eof(sockets.theirs.get()); }};
  const auto echoes_come_to = [&](std::size_t expected) {  // without a recv() of our own
    return course_test::eventually(2s,
                                   [&] { return unread_bytes(sockets.ours.get()) == expected; });
  };
  REQUIRE(blocking::send_all(sockets.ours.get(), bytes_of("x")) == blocking::sent::all);
  CHECK(echoes_come_to(1));
  const void* const before = course_test::last_recv_buffer();
  echoing.interrupt();
  REQUIRE(blocking::send_all(sockets.ours.get(), bytes_of("y")) == blocking::sent::all);
  CHECK(echoes_come_to(2));
  REQUIRE(blocking::send_all(sockets.ours.get(), bytes_of("z")) == blocking::sent::all);
  CHECK(echoes_come_to(3));
  UNSCOPED_INFO(
      "recv() was given another buffer: does echo_until_eof call itself? Then each signal or echo "
      "takes a buffer of the thread's stack, until none is left. Go round the loop instead");
  CHECK(course_test::last_recv_buffer() == before);
}
