// SPDX-License-Identifier: MIT
// Tasks 02.2 and 02.3: one connection, driven by hand instead of by epoll.
#include "connection.hpp"

#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <future>
#include <string>

#include "allocations.hpp"
#include "bytes.hpp"
#include "errors.hpp"
#include "eventually.hpp"
#include "patience.hpp"
#include "refuse_calls.hpp"
#include "socket_pair.hpp"
#include "watchdog.hpp"

using namespace std::chrono_literals;
using course_test::compare_bytes;
using course_test::identical;
using course_test::pattern;

template <>
struct Catch::StringMaker<epoll::state> {
  static std::string convert(epoll::state what) {
    return what == epoll::state::open ? "open" : "closed";
  }
};

namespace {

// A connection whose peer is in the test, with non-blocking sockets at both ends.
struct fixture {
  explicit fixture(const course_test::socket_pair_options& options = {})
      : fixture{course_test::tcp_pair(options)} {}
  explicit fixture(course_test::socket_pair sockets)
      : peer{std::move(sockets.ours)}, client{std::move(sockets.theirs)} {
    course_test::set_nonblocking(peer.get());
    course_test::set_nonblocking(client.fd());
  }

  void send(const std::string& data) const {
    const auto sent = ::send(peer.get(), data.data(), data.size(), MSG_NOSIGNAL);
    REQUIRE(sent == static_cast<::ssize_t>(data.size()));
    REQUIRE(course_test::eventually(2s, [&] { return unread(client.fd()) > 0; }));
  }

  // What has arrived at the peer, as much as there is now.
  [[nodiscard]] std::string receive() const {
    std::string received(256 * 1024, '\0');
    const auto got = ::recv(peer.get(), received.data(), received.size(), 0);
    received.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return received;
  }

  [[nodiscard]] static int unread(int socket) {
    int bytes = 0;
    common::check(::ioctl(socket, FIONREAD, &bytes), "ioctl FIONREAD");
    return bytes;
  }

  common::unique_fd peer;
  epoll::connection client;
  std::array<std::byte, 64 * 1024> scratch{};
};

constexpr const char* tries_until_there_is_room =
    "send() says EAGAIN until this client reads, and trying until then stops all others: keep the "
    "rest in unsent_, and return";

constexpr const char* closed_for_want_of_room =
    "the socket did not take the whole echo, and the connection says closed. A short send() is no "
    "error and sets no errno; the next send() says EAGAIN: keep the rest in unsent_, and say open";

// Lets the peer talk without reading, until the connection has to keep something. Returns what the
// connection has taken.
std::string talk_until_stalled(fixture& pair) {
  const course_test::watchdog deadline{5s, tries_until_there_is_room};
  std::string taken;
  while (pair.client.unsent_bytes() == 0) {
    const std::string message = pattern(1, 16 * 1024, taken.size());
    pair.send(message);
    taken += message;
    while (fixture::unread(pair.client.fd()) > 0 && pair.client.unsent_bytes() == 0) {
      errno = 0;
      const epoll::state after = pair.client.on_readable(pair.scratch);
      // Not for each that is open: Catch2 keeps the texts, and a test here counts allocations.
      if (after == epoll::state::closed) UNSCOPED_INFO(closed_for_want_of_room);
      REQUIRE(after == epoll::state::open);
    }
    REQUIRE(taken.size() < 64 * 1024 * 1024);
  }
  taken.resize(taken.size() - static_cast<std::size_t>(fixture::unread(pair.client.fd())));
  return taken;
}

// Leaves the connection's socket no room for a single byte, until the peer reads.
void fill(const fixture& pair) {
  const std::string filler(4096, '.');
  while (::send(pair.client.fd(), filler.data(), filler.size(), MSG_NOSIGNAL) > 0) {
  }
}

// What on_readable() says on a thread of its own, which some calls are refused to.
epoll::state readable_on_a_thread(fixture& pair, void (*refuse)(int error), int error) {
  return std::async(std::launch::async,
                    [&] {
                      refuse(error);
                      return pair.client.on_readable(pair.scratch);
                    })
      .get();
}

constexpr course_test::socket_pair_options small_buffers{.send_buffer_bytes = 4096,
                                                         .receive_buffer_bytes = 4096};

}  // namespace

TEST_CASE("02.2 the bytes that can be read are echoed", "[02.2]") {
  fixture pair;
  pair.send("hello");
  CHECK(pair.client.on_readable(pair.scratch) == epoll::state::open);
  UNSCOPED_INFO("echo what this recv() brought, once, and not the whole scratch buffer");
  CHECK(compare_bytes(pair.receive(), "hello") == identical);
}

TEST_CASE("02.2 bytes that do not fit into one receive are left for the next event", "[02.2]") {
  fixture pair;
  pair.send("0123456789");
  CHECK(pair.client.on_readable(std::span{pair.scratch}.first(4)) == epoll::state::open);
  UNSCOPED_INFO(
      "one recv() an event is enough: epoll reports again what is left. A connection that reads on "
      "makes the others wait, and may read while bytes are unsent. If there is one recv(), it may "
      "take scratch.size() bytes, here 4: sizeof(scratch) is the size of the span itself");
  CHECK(compare_bytes(pair.receive(), "0123") == identical);
  CHECK(pair.client.on_readable(pair.scratch) == epoll::state::open);
  CHECK(compare_bytes(pair.receive(), "456789") == identical);
}

TEST_CASE("02.2 a wake-up without bytes does not close the connection", "[02.2]") {
  fixture pair;
  UNSCOPED_INFO("recv() said EAGAIN: not now. The connection stays open");
  CHECK(pair.client.on_readable(pair.scratch) == epoll::state::open);
}

TEST_CASE("02.2 the peer's FIN closes the connection", "[02.2]") {
  fixture pair;
  ::shutdown(pair.peer.get(), SHUT_WR);
  UNSCOPED_INFO("recv() returned 0: nothing more will come, and all that came was echoed");
  CHECK(course_test::eventually(
      2s, [&] { return pair.client.on_readable(pair.scratch) == epoll::state::closed; }));
}

TEST_CASE("02.2 the peer's FIN closes the connection, whatever errno was before", "[02.2]") {
  fixture pair;
  CHECK(pair.client.on_readable(pair.scratch) == epoll::state::open);  // its recv() says EAGAIN
  ::shutdown(pair.peer.get(), SHUT_WR);
  UNSCOPED_INFO(
      "recv() returned 0, the FIN, and the connection stays open: only -1 sets errno. After a 0, "
      "errno is left from an earlier call, here EAGAIN");
  CHECK(course_test::eventually(2s, [&] {
    errno = EAGAIN;
    return pair.client.on_readable(pair.scratch) == epoll::state::closed;
  }));
}

TEST_CASE("02.2 a reset closes the connection", "[02.2]") {
  fixture pair;
  course_test::reset_on_close(pair.peer.get());
  pair.peer.reset();
  UNSCOPED_INFO("recv() failed with ECONNRESET");
  CHECK(course_test::eventually(
      2s, [&] { return pair.client.on_readable(pair.scratch) == epoll::state::closed; }));
}

TEST_CASE("02.2 bytes that the socket does not take are kept", "[02.2]") {
  fixture pair{small_buffers};
  const std::string taken = talk_until_stalled(pair);
  std::string received;
  (void)course_test::eventually(2s, [&] {
    received += pair.receive();
    return received.size() + pair.client.unsent_bytes() >= taken.size();
  });
  UNSCOPED_INFO(
      "bytes are lost. After a short send(), the rest of data goes to the next send(). At EAGAIN, "
      "the bytes that no send() took belong into unsent_, all of them");
  REQUIRE(received.size() + pair.client.unsent_bytes() >= taken.size());
  UNSCOPED_INFO(
      "unsent_ holds bytes that were sent: keep only those behind the ones that a short send() "
      "took. Or it begins before the echo: -1 is not a count, so do not add it to data.begin()");
  REQUIRE(received.size() + pair.client.unsent_bytes() == taken.size());
  UNSCOPED_INFO("the bytes that were sent are not the first ones of the echo, in their order");
  CHECK(compare_bytes(received, taken.substr(0, received.size())) == identical);
}

TEST_CASE("02.2 a socket without room takes nothing, and the whole echo is kept", "[02.2]") {
  fixture pair{course_test::unix_pair()};  // there a full socket stays full, to the byte
  fill(pair);
  const std::string message = pattern(1, 48 * 1024);
  pair.send(message);
  {
    const course_test::watchdog deadline{5s, tries_until_there_is_room};
    UNSCOPED_INFO(closed_for_want_of_room << ", however much is left");
    REQUIRE(pair.client.on_readable(pair.scratch) == epoll::state::open);
  }
  UNSCOPED_INFO("send() said EAGAIN and took nothing: keep all that is left of data in unsent_");
  REQUIRE(pair.client.unsent_bytes() >= message.size());
  UNSCOPED_INFO(
      "unsent_ holds more than the echo: send() returned -1, which is not a count. data.begin() + "
      "-1 is the byte before the echo. After -1, keep all of data");
  CHECK(pair.client.unsent_bytes() == message.size());
}

TEST_CASE("02.2 an error that is not EAGAIN ends its own connection, and throws nothing",
          "[02.2]") {
  const struct {
    const char* call;
    void (*refuse)(int error);
    int error;
  } failures[] = {{"recv", course_test::refuse_recv, ETIMEDOUT},
                  {"recv", course_test::refuse_recv, ENOMEM},
                  {"send", course_test::refuse_send, ETIMEDOUT},
                  {"send", course_test::refuse_send, ENOBUFS}};
  for (const auto& each : failures) {
    fixture pair;
    pair.send("anyone?");
    epoll::state after = epoll::state::open;
    UNSCOPED_INFO(each.call << "() failed with " << common::describe_errno(each.error)
                            << " for one client, and an exception would end the server for all of "
                               "them: return closed for any errno but EAGAIN");
    REQUIRE_NOTHROW(after = readable_on_a_thread(pair, each.refuse, each.error));
    CHECK(after == epoll::state::closed);
  }
}

TEST_CASE("02.2 a client without room does not make the others wait", "[02.2]") {
  fixture pair{small_buffers};
  const std::string message = pattern(1, 16 * 1024);
  std::future<void> talking = std::async(std::launch::async, [&] {
    const auto end = std::chrono::steady_clock::now() + 1s;
    while (pair.client.unsent_bytes() == 0 && std::chrono::steady_clock::now() < end) {
      (void)::send(pair.peer.get(), message.data(), message.size(), MSG_NOSIGNAL);
      if (pair.client.on_readable(pair.scratch) == epoll::state::closed) return;
    }
  });
  const bool returned = talking.wait_for(3s * course_test::patience()) == std::future_status::ready;
  pair.peer.reset();  // a loop that still tries learns that nobody is there
  talking.get();
  UNSCOPED_INFO(tries_until_there_is_room);
  CHECK(returned);
}

TEST_CASE("02.2 bytes that were sent are not kept, whatever errno was before", "[02.2]") {
  fixture pair;
  pair.send("hello");
  errno = EAGAIN;
  CHECK(pair.client.on_readable(pair.scratch) == epoll::state::open);
  const std::string came = pair.receive();
  UNSCOPED_INFO("the same bytes were sent twice: after a send(), go on behind those that it took");
  REQUIRE(came.size() <= 5);
  UNSCOPED_INFO(
      "recv() and send() have succeeded, and errno was looked at: only -1 sets errno. What it says "
      "is left from an earlier call, here EAGAIN");
  CHECK((came == "hello" && pair.client.unsent_bytes() == 0));
}

TEST_CASE("02.2 a peer that is gone closes the connection, without SIGPIPE", "[02.2]") {
  static volatile std::sig_atomic_t sigpipes = 0;
  const auto previous = std::signal(SIGPIPE, [](int) { sigpipes = sigpipes + 1; });
  fixture pair{course_test::unix_pair()};
  pair.send("anyone?");
  pair.peer.reset();
  UNSCOPED_INFO(
      "send() failed with EPIPE, which is not EAGAIN: send_or_keep() says closed, and "
      "on_readable() returns what send_or_keep() says");
  CHECK(pair.client.on_readable(pair.scratch) == epoll::state::closed);
  std::signal(SIGPIPE, previous);
  UNSCOPED_INFO(
      "SIGPIPE was raised, and its default ends the process: pass MSG_NOSIGNAL to send()");
  CHECK(sigpipes == 0);
}

TEST_CASE("02.3 the kept bytes are sent in order when there is room", "[02.3]") {
  fixture pair{small_buffers};
  const std::string taken = talk_until_stalled(pair);
  std::string received;
  CHECK(course_test::eventually(5s, [&] {
    received += pair.receive();
    if (pair.client.unsent_bytes() > 0) {
      UNSCOPED_INFO("there was room for a part only: keep the rest, and say open");
      CHECK(pair.client.on_writable() == epoll::state::open);
    }
    return received.size() >= taken.size();
  }));
  UNSCOPED_INFO(
      "the kept bytes come first, and once: take them out of unsent_ before you send them");
  CHECK(compare_bytes(received, taken) == identical);
  UNSCOPED_INFO(
      "unsent_ never empties: take the bytes out of it before you send them. A copy leaves them "
      "there, and a span of unsent_ is sent from under itself");
  CHECK(pair.client.unsent_bytes() == 0);
}

TEST_CASE("02.3 a connection with unsent bytes waits for room, and for nothing else", "[02.3]") {
  fixture pair{small_buffers};
  UNSCOPED_INFO("with nothing to send, EPOLLOUT would be reported at once, forever");
  REQUIRE(pair.client.wanted_events() == EPOLLIN);
  (void)talk_until_stalled(pair);
  UNSCOPED_INFO("reading on would pile up the echoes of a client that does not read them");
  CHECK(pair.client.wanted_events() == EPOLLOUT);
}

TEST_CASE("02.3 one unsent byte is enough to wait for room", "[02.3]") {
  fixture pair{course_test::unix_pair()};  // there a full socket stays full, to the byte
  fill(pair);
  pair.send("x");
  {
    const course_test::watchdog deadline{5s, tries_until_there_is_room};
    UNSCOPED_INFO(closed_for_want_of_room);
    REQUIRE(pair.client.on_readable(pair.scratch) == epoll::state::open);
  }
  UNSCOPED_INFO("send() said EAGAIN, so unsent_ has to hold this byte: see the tests of 02.2");
  REQUIRE(pair.client.unsent_bytes() == 1);
  UNSCOPED_INFO(
      "the end of an echo is unsent, and nobody waits for room to send it: any unsent byte means "
      "EPOLLOUT");
  CHECK(pair.client.wanted_events() == EPOLLOUT);
}

TEST_CASE("02.3 a wake-up without room loses neither the connection nor its bytes", "[02.3]") {
  fixture pair{course_test::unix_pair()};
  fill(pair);
  pair.send("x");
  const course_test::watchdog deadline{5s, tries_until_there_is_room};
  UNSCOPED_INFO(closed_for_want_of_room);
  REQUIRE(pair.client.on_readable(pair.scratch) == epoll::state::open);
  UNSCOPED_INFO("send() said EAGAIN, so unsent_ has to hold this byte: see the tests of 02.2");
  REQUIRE(pair.client.unsent_bytes() == 1);
  UNSCOPED_INFO(
      "on_writable() found no room: send() said EAGAIN, not now. The connection stays open");
  CHECK(pair.client.on_writable() == epoll::state::open);
  UNSCOPED_INFO("on_writable() sent nothing, so unsent_ has to hold the byte again, and once");
  CHECK(pair.client.unsent_bytes() == 1);
  UNSCOPED_INFO(
      "on_writable() has left a byte unsent, and the connection does not wait for room, or not for "
      "room alone: then it would read on. A flag beside unsent_ can disagree with unsent_: ask "
      "unsent_.empty() instead");
  CHECK(pair.client.wanted_events() == EPOLLOUT);
}

TEST_CASE("02.3 a peer that is gone while bytes are unsent closes the connection", "[02.3]") {
  fixture pair{course_test::unix_pair()};
  fill(pair);
  pair.send("x");
  const course_test::watchdog deadline{5s, tries_until_there_is_room};
  UNSCOPED_INFO("send() said EAGAIN, so unsent_ has to hold this byte: see the tests of 02.2");
  REQUIRE(pair.client.on_readable(pair.scratch) == epoll::state::open);
  REQUIRE(pair.client.unsent_bytes() == 1);
  pair.peer.reset();
  UNSCOPED_INFO(
      "send() failed, and not with EAGAIN: on_writable() returns what send_or_keep() says, or the "
      "echo goes on without these bytes");
  CHECK(pair.client.on_writable() == epoll::state::closed);
}

TEST_CASE("02.3 the kept bytes stay in memory that is ours until they are sent", "[02.3]") {
  fixture pair{course_test::unix_pair()};
  fill(pair);
  pair.send("hello");
  const course_test::watchdog deadline{5s, tries_until_there_is_room};
  {
    const course_test::fenced_memory fence;  // what unsent_ gives back cannot be read after that
    (void)pair.client.on_readable(pair.scratch);
  }
  UNSCOPED_INFO("send() said EAGAIN, so unsent_ has to hold the echo: see the tests of 02.2");
  REQUIRE(pair.client.unsent_bytes() == 5);
  (void)pair.receive();  // makes room
  UNSCOPED_INFO(
      "the bytes to send lie in memory that was freed, so send() says EFAULT. A span owns no "
      "bytes: what std::exchange() returns has to live in a vector until all of it is sent");
  CHECK(pair.client.on_writable() == epoll::state::open);
  CHECK(compare_bytes(pair.receive(), "hello") == identical);
}

TEST_CASE("02.3 a connection that has caught up waits for bytes again", "[02.3]") {
  fixture pair{small_buffers};
  (void)talk_until_stalled(pair);
  CHECK(course_test::eventually(5s, [&] {
    (void)pair.receive();
    return pair.client.on_writable() == epoll::state::open && pair.client.unsent_bytes() == 0;
  }));
  CHECK(pair.client.wanted_events() == EPOLLIN);
}

TEST_CASE("02.3 a connection that has caught up holds no memory for unsent bytes", "[02.3]") {
  fixture pair{small_buffers};
  std::string received(256 * 1024, '\0');
  const std::ptrdiff_t before = course_test::live_allocations();
  (void)talk_until_stalled(pair);
  const bool caught_up = course_test::eventually(5s, [&] {
    (void)::recv(pair.peer.get(), received.data(), received.size(), 0);
    return pair.client.on_writable() == epoll::state::open && pair.client.unsent_bytes() == 0;
  });
  const std::ptrdiff_t kept = course_test::live_allocations() - before;
  REQUIRE(caught_up);
  UNSCOPED_INFO(
      "every client that was slow once keeps a buffer for good: clear() leaves a vector its "
      "capacity. Take the bytes out of unsent_ with std::exchange before you send them: to assign "
      "to a vector from a span into itself is undefined, too");
  CHECK(kept == 0);
}
