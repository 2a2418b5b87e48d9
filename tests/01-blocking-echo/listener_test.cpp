// SPDX-License-Identifier: MIT
// Task 01.1: the listening socket.
#include "listener.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/time.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <system_error>

#include "background.hpp"
#include "client.hpp"
#include "descriptor_limit.hpp"
#include "fd_scope.hpp"
#include "refuse_calls.hpp"
#include "socket_pair.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using course_test::background;

namespace {

template <typename Value = int>
Value option_of(int socket, int level, int option) {
  Value value{};
  ::socklen_t size = sizeof value;
  common::check(::getsockopt(socket, level, option, &value, &size), "getsockopt");
  return value;
}

std::string why_not_open(const std::system_error& error) {
  const std::string what = error.what();
  if (what.starts_with("setsockopt")) {
    return "an option is a number that means another option at another level: SO_REUSEADDR belongs "
           "to SOL_SOCKET, and TCP_NODELAY to IPPROTO_TCP";
  }
  if (what.starts_with("bind") && error.code() == std::errc::invalid_argument) {
    return "bind() takes no socket that has a port already: was listen() called first? It gives a "
           "socket without an address a port of its own. Nor does bind() take a length that is too "
           "short: pass `sizeof address`, because `sizeof &address` is that of a pointer";
  }
  return "open_listener() failed, and nothing is wrong with host and port";
}

common::unique_fd open_listener(const std::string& host = "127.0.0.1") {
  common::unique_fd listener;
  try {
    listener = blocking::open_listener(host, 0);
  } catch (const std::system_error& error) {
    UNSCOPED_INFO(why_not_open(error));
    throw;
  }
  UNSCOPED_INFO(
      "open_listener() returned a descriptor that is closed already: a second unique_fd was made "
      "of its number, and the first one closed it. Return the unique_fd itself");
  REQUIRE(::fcntl(listener.get(), F_GETFD) != -1);
  return listener;
}

// With SO_REUSEPORT a second bind() to the same port succeeds, and no test here could go on.
common::unique_fd listener_that_has_its_port_alone() {
  common::unique_fd listener = open_listener();
  UNSCOPED_INFO(
      "SO_REUSEPORT is set: it lets a second server share the port, so that no bind() fails. The "
      "option for a restart is SO_REUSEADDR");
  REQUIRE(option_of(listener.get(), SOL_SOCKET, SO_REUSEPORT) == 0);
  return listener;
}

std::string address_of(int socket) {
  ::sockaddr_in bound{};
  ::socklen_t size = sizeof bound;
  common::check(::getsockname(socket, reinterpret_cast<::sockaddr*>(&bound), &size), "getsockname");
  return ::inet_ntoa(bound.sin_addr);
}

// The length of its accept queue, as ss -l shows it.
std::uint32_t backlog_of(int listener) {
  ::tcp_info info{};
  ::socklen_t size = sizeof info;
  common::check(::getsockopt(listener, IPPROTO_TCP, TCP_INFO, &info, &size), "TCP_INFO");
  return info.tcpi_sacked;
}

}  // namespace

TEST_CASE("01.1 a listener on port 0 is given a port and takes a client", "[01.1]") {
  const common::unique_fd listener = open_listener();
  UNSCOPED_INFO("the socket does not listen: was listen() called after bind()?");
  REQUIRE(option_of(listener.get(), SOL_SOCKET, SO_ACCEPTCONN) == 1);
  CHECK_NOTHROW(course_test::client{course_test::port_of(listener.get())});
}

TEST_CASE("01.1 the listener has the address that it was given, and no other", "[01.1]") {
  const common::unique_fd listener = open_listener("127.0.0.2");
  UNSCOPED_INFO(
      "the socket is bound to another address, so other clients reach it than the caller meant: "
      "give bind() `address`, which holds host and port. INADDR_ANY would let in every network");
  CHECK(address_of(listener.get()) == "127.0.0.2");
}

TEST_CASE("01.1 accept on the listener sleeps until a client comes", "[01.1]") {
  const common::unique_fd listener = open_listener();
  UNSCOPED_INFO(
      "the listener does not block: accept() would fail with EAGAIN at once, and a loop around it "
      "would keep one CPU busy. SOCK_NONBLOCK is for chapter 02");
  CHECK((::fcntl(listener.get(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("01.1 a port in use is an error that names bind, the address and the reason", "[01.1]") {
  const common::unique_fd first = listener_that_has_its_port_alone();
  const std::uint16_t port = course_test::port_of(first.get());
  UNSCOPED_INFO(
      "bind() fails here: check its result, and name the address: common::check(…, \"bind "
      "HOST:PORT\"), with the port as it was given, not in network byte order");
  CHECK_THROWS_MATCHES(blocking::open_listener("127.0.0.1", port), std::system_error,
                       MessageMatches(ContainsSubstring("bind 127.0.0.1:" + std::to_string(port)) &&
                                      ContainsSubstring("EADDRINUSE")));
}

TEST_CASE("01.1 a listener that cannot be opened leaves no descriptor behind", "[01.1]") {
  const common::unique_fd first = listener_that_has_its_port_alone();
  const course_test::fd_scope fds;
  UNSCOPED_INFO("bind() fails here, because the port is taken: check its result");
  CHECK_THROWS_AS(blocking::open_listener("127.0.0.1", course_test::port_of(first.get())),
                  std::system_error);
  UNSCOPED_INFO("bind() failed and the socket is still open: put it into a unique_fd at once");
  CHECK(fds.leaked() == "");
}

TEST_CASE("01.1 a socket that cannot be made is an error that names it", "[01.1]") {
  const course_test::room_for_descriptors none{0};
  UNSCOPED_INFO(
      "no descriptor is free here, so socket() returns -1, which a unique_fd takes without a word: "
      "check the result of socket() before any other call");
  CHECK_THROWS_MATCHES(blocking::open_listener("127.0.0.1", 0), std::system_error,
                       MessageMatches(ContainsSubstring("socket:") && ContainsSubstring("EMFILE")));
}

TEST_CASE("01.1 a listen that fails is an error that names it, and leaves no descriptor behind",
          "[01.1]") {
  (void)open_listener();  // which says so if another call fails
  const course_test::fd_scope fds;
  // The kernel refuses listen() to this thread only: EADDRINUSE, as when another one was faster.
  background<void> opening{[] {
                             course_test::refuse_listen(EADDRINUSE);
                             (void)blocking::open_listener("127.0.0.1", 0);
                           },
                           [] {}};
  REQUIRE(opening.finished());
  UNSCOPED_INFO("listen() failed, and open_listener() does not say so: check its result, too");
  CHECK_THROWS_MATCHES(
      opening.get(), std::system_error,
      MessageMatches(ContainsSubstring("listen") && ContainsSubstring("EADDRINUSE")));
  UNSCOPED_INFO("listen() failed and the socket is still open: put it into a unique_fd at once");
  CHECK(fds.leaked() == "");
}

TEST_CASE("01.1 an option that is refused is an error, and leaves no descriptor behind", "[01.1]") {
  (void)open_listener();  // which says so if another call fails
  for (const int level : {int{SOL_SOCKET}, int{IPPROTO_TCP}}) {
    const course_test::fd_scope fds;
    background<void> opening{[level] {
                               course_test::refuse_setsockopt(level, ENOPROTOOPT);
                               course_test::refuse_listen(EADDRINUSE);
                               (void)blocking::open_listener("127.0.0.1", 0);
                             },
                             [] {}};
    REQUIRE(opening.finished());
    UNSCOPED_INFO(
        "setsockopt() fails here, and then listen(). If the error is that of listen(): was the "
        "option set without set_option(), which checks the call? Or after listen()? Then a client "
        "that comes in between has a socket without the option");
    const std::string option = level == SOL_SOCKET ? "SO_REUSEADDR" : "TCP_NODELAY";
    CHECK_THROWS_MATCHES(
        opening.get(), std::system_error,
        MessageMatches(ContainsSubstring("setsockopt") && ContainsSubstring(option) &&
                       ContainsSubstring("ENOPROTOOPT")));
    UNSCOPED_INFO("an option failed and the socket is still open: put it into a unique_fd at once");
    CHECK(fds.leaked() == "");
  }
}

TEST_CASE("01.1 the port can be listened on again while old connections wind down", "[01.1]") {
  std::uint16_t port = 0;
  {
    const common::unique_fd listener = open_listener();
    port = course_test::port_of(listener.get());
    course_test::client peer{port};
    common::unique_fd accepted{common::check(::accept(listener.get(), nullptr, nullptr), "accept")};
    accepted.reset();  // the side that closes first keeps the port in TIME_WAIT for a minute
    UNSCOPED_INFO(
        "the accepted socket was closed, and the client sees no FIN: is SO_LINGER set on the "
        "listener? Accepted sockets inherit it");
    CHECK(peer.recv_until_eof().empty());
  }
  UNSCOPED_INFO("the port is held by a connection in TIME_WAIT: set SO_REUSEADDR before bind()");
  CHECK_NOTHROW(blocking::open_listener("127.0.0.1", port));
}

TEST_CASE("01.1 accepted sockets send small segments at once", "[01.1]") {
  const common::unique_fd listener = open_listener();
  const course_test::client peer{course_test::port_of(listener.get())};
  const common::unique_fd accepted{
      common::check(::accept(listener.get(), nullptr, nullptr), "accept")};
  UNSCOPED_INFO(
      "Nagle's algorithm is on: set TCP_NODELAY on the listener, before clients come, at the level "
      "IPPROTO_TCP");
  CHECK(option_of(accepted.get(), IPPROTO_TCP, TCP_NODELAY) == 1);
}

TEST_CASE("01.1 accepted sockets inherit no time limit and no reset", "[01.1]") {
  const common::unique_fd listener = open_listener();
  const course_test::client peer{course_test::port_of(listener.get())};
  const common::unique_fd accepted{
      common::check(::accept(listener.get(), nullptr, nullptr), "accept")};
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    const auto limit = option_of<::timeval>(accepted.get(), SOL_SOCKET, option);
    UNSCOPED_INFO(
        "a client that is silent, or does not read, for this long is cut: SO_RCVTIMEO or "
        "SO_SNDTIMEO is set on the listener, and accepted sockets inherit it");
    CHECK((limit.tv_sec == 0 && limit.tv_usec == 0));
  }
  UNSCOPED_INFO(
      "SO_LINGER is set on the listener, and accepted sockets inherit it: with 0 seconds, close() "
      "sends a reset instead of a FIN, and echoes that are under way are lost");
  CHECK(option_of<::linger>(accepted.get(), SOL_SOCKET, SO_LINGER).l_onoff == 0);
}

TEST_CASE("01.1 the accept queue is as long as the system allows", "[01.1]") {
  const common::unique_fd listener = open_listener();
  const course_test::tcp_listener longest = course_test::listen_on_any_port();
  UNSCOPED_INFO(
      "the accept queue is full after this many clients, and the next one waits a second or more "
      "for its connect: pass SOMAXCONN to listen()");
  CHECK(backlog_of(listener.get()) >= backlog_of(longest.socket.get()));
}

TEST_CASE("01.1 the listener is not handed down to child programs", "[01.1]") {
  const common::unique_fd listener = open_listener();
  UNSCOPED_INFO("the socket survives exec(): pass SOCK_STREAM | SOCK_CLOEXEC to socket()");
  CHECK((::fcntl(listener.get(), F_GETFD) & FD_CLOEXEC) == FD_CLOEXEC);
  background<bool> without_fcntl{[] {
                                   course_test::refuse_fcntl(F_SETFD, EPERM);
                                   const auto other = blocking::open_listener("127.0.0.1", 0);
                                   return (::fcntl(other.get(), F_GETFD) & FD_CLOEXEC) != 0;
                                 },
                                 [] {}};
  REQUIRE(without_fcntl.finished());
  UNSCOPED_INFO(
      "fcntl() sets the flag when the socket is there already, and another thread may call fork() "
      "and exec() in between: pass SOCK_CLOEXEC to socket()");
  CHECK(without_fcntl.get());
}
