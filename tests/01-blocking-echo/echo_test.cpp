// SPDX-License-Identifier: MIT
// Tasks 01.2 and 01.3: sending all of it, and echoing until the peer is done.
#include "echo.hpp"

#include <poll.h>
#include <sys/ioctl.h>

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <string>
#include <thread>

#include "background.hpp"
#include "bytes.hpp"
#include "errors.hpp"
#include "eventually.hpp"
#include "socket_pair.hpp"

using namespace std::chrono_literals;
using course_test::background;
using course_test::compare_bytes;
using course_test::identical;
using course_test::pattern;
using course_test::tcp_pair;
using course_test::unix_pair;

namespace {

constexpr std::size_t more_than_any_buffer_bytes = 8 * 1024 * 1024;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span{text});
}

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

}  // namespace

TEST_CASE("01.2 send_all sends more than all buffers hold", "[01.2]") {
  const course_test::socket_pair sockets = tcp_pair();
  const std::string message = pattern(1, more_than_any_buffer_bytes);
  background<blocking::sent> sending{
      sockets.theirs.get(),
      [&] { return blocking::send_all(sockets.theirs.get(), bytes_of(message)); }};
  const std::string received = read_up_to(sockets.ours.get(), message.size());
  CHECK(sending.get() == blocking::sent::all);
  CHECK(compare_bytes(received, message) == identical);
}

TEST_CASE("01.2 a short send is continued where it stopped", "[01.2]") {
  const course_test::socket_pair sockets = unix_pair({.send_buffer_bytes = 4096});
  const std::string message = pattern(1, 1024 * 1024);
  background<blocking::sent> sending{
      sockets.theirs.get(),
      [&] { return blocking::send_all(sockets.theirs.get(), bytes_of(message)); }};
  // The sender waits for room with part of the message sent: a signal then makes its send() return
  // that part, or -1 with EINTR if nothing of this call went out yet.
  std::string received;
  std::string chunk(8 * 1024, '\0');
  while (received.size() < message.size() && readable_within(sockets.ours.get(), 1s)) {
    if (sending.running()) sending.interrupt();
    const ::ssize_t got = ::recv(sockets.ours.get(), chunk.data(), chunk.size(), 0);
    if (got <= 0) break;
    received.append(chunk, 0, static_cast<std::size_t>(got));
  }
  UNSCOPED_INFO(
      "send() returned less than it was given, and the rest was never sent: "
      "go on from where it stopped");
  CHECK(compare_bytes(received, message) == identical);
  CHECK(sending.get() == blocking::sent::all);
}

TEST_CASE("01.2 a send to a peer that is gone fails, without SIGPIPE", "[01.2]") {
  static volatile std::sig_atomic_t sigpipes = 0;
  const auto previous = std::signal(SIGPIPE, [](int) { sigpipes = sigpipes + 1; });
  course_test::socket_pair sockets = unix_pair();
  sockets.ours.reset();
  CHECK(blocking::send_all(sockets.theirs.get(), bytes_of("anyone?")) == blocking::sent::failed);
  std::signal(SIGPIPE, previous);
  UNSCOPED_INFO(
      "SIGPIPE was raised, and its default ends the process: pass MSG_NOSIGNAL to send()");
  CHECK(sigpipes == 0);
}

TEST_CASE("01.3 what is sent comes back, in order", "[01.3]") {
  const course_test::socket_pair sockets = tcp_pair();
  background<blocking::ending> echoing{
      sockets.theirs.get(), [&] { return blocking::echo_until_eof(sockets.theirs.get()); }};
  for (const std::size_t bytes : {1U, 100U, 3U, 16U * 1024U, 2U, 40'000U}) {
    const std::string message = pattern(static_cast<unsigned>(bytes), bytes);
    REQUIRE(blocking::send_all(sockets.ours.get(), bytes_of(message)) == blocking::sent::all);
    UNSCOPED_INFO("echo what this recv() brought, not the whole buffer");
    REQUIRE(compare_bytes(read_up_to(sockets.ours.get(), bytes), message) == identical);
  }
  UNSCOPED_INFO("more came back than was sent");
  CHECK(unread_bytes(sockets.ours.get()) == 0);
}

TEST_CASE("01.3 what arrived before the FIN is echoed before the end", "[01.3]") {
  const course_test::socket_pair sockets = tcp_pair();
  const std::string message = pattern(7, 100'000);
  REQUIRE(blocking::send_all(sockets.ours.get(), bytes_of(message)) == blocking::sent::all);
  ::shutdown(sockets.ours.get(), SHUT_WR);
  background<blocking::ending> echoing{
      sockets.theirs.get(), [&] { return blocking::echo_until_eof(sockets.theirs.get()); }};
  CHECK(compare_bytes(read_up_to(sockets.ours.get(), message.size()), message) == identical);
  UNSCOPED_INFO("recv() returning 0 is the peer's FIN, an orderly end: peer_finished");
  CHECK(echoing.get() == blocking::ending::peer_finished);
}

TEST_CASE("01.3 a reset ends the conversation as peer_gone", "[01.3]") {
  course_test::socket_pair sockets = tcp_pair();
  background<blocking::ending> echoing{
      sockets.theirs.get(), [&] { return blocking::echo_until_eof(sockets.theirs.get()); }};
  course_test::reset_on_close(sockets.ours.get());
  sockets.ours.reset();
  UNSCOPED_INFO("recv() returned -1 with ECONNRESET: the peer is gone, and nothing threw");
  CHECK(echoing.get() == blocking::ending::peer_gone);
}

TEST_CASE("01.3 a signal during recv does not end the conversation", "[01.3]") {
  const course_test::socket_pair sockets = tcp_pair();
  background<blocking::ending> echoing{
      sockets.theirs.get(), [&] { return blocking::echo_until_eof(sockets.theirs.get()); }};
  const std::string message = "still there?";
  for (int round = 0; round < 20 && echoing.running(); ++round) {
    echoing.interrupt();
    std::this_thread::yield();
  }
  CHECK(blocking::send_all(sockets.ours.get(), bytes_of(message)) == blocking::sent::all);
  UNSCOPED_INFO("recv() returned -1 with EINTR, which says nothing about the peer: call it again");
  CHECK(read_up_to(sockets.ours.get(), message.size()) == message);
}
