// SPDX-License-Identifier: MIT
// Limits and their sweep, with a clock that the test sets; and what a client sees of them.
#include <sys/socket.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <list>
#include <string>

#include "bytes.hpp"
#include "cancel_source.hpp"
#include "eventually.hpp"
#include "io_context.hpp"
#include "site_server.hpp"
#include "socket_pair.hpp"
#include "stalled_client.hpp"
#include "time_limits.hpp"

using namespace course_test;
using namespace std::chrono_literals;
using uring::http::coarse_now;
using uring::http::limit_clock;
using uring::http::limit_lengths;
using uring::http::time_limit;
using uring::http::time_limits;
using uring::http::wait_for;

namespace {

constexpr limit_lengths lengths{100ms, 200ms, 300ms, 400ms, 500ms, 600ms};

// Limits of clients that have taken everything.
struct limits_by_hand {
  time_limit& start(wait_for what) { return start(what, pair); }
  time_limit& start(wait_for what, const socket_pair& client) {
    time_limit& made = all.emplace_back(limits, above, client.ours.get());
    made.start(what);
    return made;
  }

  uring::io_context context;
  uring::cancel_source above{context};
  socket_pair pair = unix_pair();
  time_limits limits{lengths};
  std::list<time_limit> all;
};

}  // namespace

TEST_CASE("14.4 a limit is over when its length has gone by, and not before", "[14.4]") {
  limits_by_hand here;
  const limit_clock::time_point before = coarse_now();
  time_limit& head = here.start(wait_for::head);
  const limit_clock::time_point after = coarse_now();
  here.limits.sweep(before + 199ms);
  UNSCOPED_INFO("199 of 200 milliseconds: it is not over");
  CHECK_FALSE(head.is_over());
  here.limits.sweep(after + 200ms);
  UNSCOPED_INFO("a limit that is over is ended: whoever waits under its source goes on");
  CHECK(head.is_over());
}

TEST_CASE("14.4 one sweep ends all that are over, and only these", "[14.4]") {
  limits_by_hand here;
  time_limit& first = here.start(wait_for::request);
  time_limit& second = here.start(wait_for::request);
  time_limit& body = here.start(wait_for::body);
  here.limits.sweep(coarse_now() + 150ms);
  CHECK(first.is_over());
  UNSCOPED_INFO("one of a list was ended, and the next one waits for another sweep");
  CHECK(second.is_over());
  UNSCOPED_INFO("each kind has a length of its own: a body has 300 ms");
  CHECK_FALSE(body.is_over());
}

TEST_CASE("14.4 only those go whose own time is up", "[14.4]") {
  limits_by_hand here;
  time_limit& first = here.start(wait_for::request);
  const limit_clock::time_point by_now = coarse_now();
  REQUIRE(eventually(step_deadline, [&] { return coarse_now() > by_now; }));  // the clock ticks
  time_limit& second = here.start(wait_for::request);
  here.limits.sweep(by_now + 100ms);
  CHECK(first.is_over());
  UNSCOPED_INFO("the second was started later, and its time is not up");
  CHECK_FALSE(second.is_over());
  UNSCOPED_INFO("its time is not up, so it stays in its list: ask front() before you pop_front()");
  CHECK(second.is_linked());
}

TEST_CASE("14.4 what was ended or stopped is in no list", "[14.4]") {
  limits_by_hand here;
  time_limit& over = here.start(wait_for::head);
  time_limit& stopped = here.start(wait_for::head);
  stopped.stop();
  here.limits.sweep(coarse_now() + 1s);
  UNSCOPED_INFO("it is looked at again in each sweep, though it has been told");
  CHECK_FALSE(over.is_linked());
  UNSCOPED_INFO("the client was in time");
  CHECK_FALSE(stopped.is_over());
}

TEST_CASE("14.4 a client that takes something is slow, and not gone", "[14.4]") {
  limits_by_hand here;
  const std::string answer(1000, 'x');
  REQUIRE(::send(here.pair.ours.get(), answer.data(), answer.size(), 0) == 1000);
  time_limit& room = here.start(wait_for::room);
  time_limit& later = here.start(wait_for::room);
  const limit_clock::time_point now = coarse_now();
  here.limits.sweep(now + 500ms);
  UNSCOPED_INFO("bytes of ours are on their way to it: has_taken_something()");
  CHECK_FALSE(room.is_over());
  UNSCOPED_INFO("it is in no list, so it has no limit any more: start_again() puts it at the end");
  CHECK(room.is_linked());
  UNSCOPED_INFO("its time begins anew, from now: start_again()");
  here.limits.sweep(now + 999ms);
  CHECK_FALSE(room.is_over());
  CHECK_FALSE(later.is_over());
  here.limits.sweep(now + 1000ms);
  UNSCOPED_INFO("it has taken nothing since: then the answer is not wanted");
  CHECK(room.is_over());
}

TEST_CASE("14.4 one sweep ends those behind a slow client too", "[14.4]") {
  limits_by_hand here;
  const socket_pair of_slow = unix_pair();
  REQUIRE(::send(of_slow.ours.get(), "x", 1, 0) == 1);
  const time_limit& slow = here.start(wait_for::room, of_slow);
  const time_limit& gone = here.start(wait_for::room);
  here.limits.sweep(coarse_now() + 500ms);
  CHECK_FALSE(slow.is_over());
  UNSCOPED_INFO("a slow client goes to the end of the list: look on at those behind it");
  CHECK(gone.is_over());
}

TEST_CASE("14.4 the longest idle client is the first to go", "[14.4]") {
  limits_by_hand here;
  UNSCOPED_INFO("nobody is idle: if this is true, the server counts clients that it never ended");
  CHECK_FALSE(here.limits.end_longest_idle());
  time_limit& body = here.start(wait_for::body);
  time_limit& first = here.start(wait_for::request);
  time_limit& second = here.start(wait_for::request);
  first.start(wait_for::request);  // it has asked for something: second waits for longer now
  UNSCOPED_INFO("one was ended: that is true");
  CHECK(here.limits.end_longest_idle());
  UNSCOPED_INFO("the first of its list has waited for longest");
  CHECK(second.is_over());
  CHECK_FALSE(first.is_over());
  const bool was_ended = here.limits.end_longest_idle();
  UNSCOPED_INFO("the last of them can be ended like any other");
  CHECK(first.is_over());
  UNSCOPED_INFO("the last of them was ended, so the result is true, whether or not one is left");
  CHECK(was_ended);
  UNSCOPED_INFO("a client in the middle of a request is not idle");
  CHECK_FALSE(here.limits.end_longest_idle());
  CHECK_FALSE(body.is_over());
}

TEST_CASE("14.4 a head that does not come to its end is answered with 408", "[14.4]") {
  const site_server server{{"--head-timeout-ms", "100"}};
  client peer = server.connect();
  peer.send_all("GET / HTTP/1.1\r\nHos");
  UNSCOPED_INFO("the sweep has to end the limit that was started with the first byte");
  CHECK(status_of(peer.recv_until_eof()) == 408);
}

TEST_CASE("14.4 a body that does not come to its end is answered with 408", "[14.4]") {
  const site_server server{{"--body-timeout-ms", "100"}};
  client peer = server.connect();
  peer.send_all("POST /-/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
  CHECK(status_of(peer.recv_until_eof()) == 408);
}

TEST_CASE("14.4 a byte now and then buys a head no time", "[14.4]") {
  const site_server server{{"--head-timeout-ms", "200"}};
  client peer = server.connect();
  peer.send_all("GET / HTTP/1.1\r\nX: ");
  std::string answer;
  for (int i = 0; i < 5000 && answer.empty(); ++i) {
    peer.send_all("x");
    (void)happens_within(milliseconds{20}, [&] {
      answer += peer.recv_some(1000);
      return !answer.empty();
    });
  }
  UNSCOPED_INFO("the limit of a head began anew with each byte");
  CHECK(status_of(answer) == 408);
}

TEST_CASE("14.4 an idle client is sent home without a word", "[14.4]") {
  const site_server server{{"--idle-timeout-ms", "100"}};
  client silent = server.connect();
  CHECK(silent.recv_until_eof().empty());
  client peer = server.connect();
  peer.send_all(site_server::request("/hello.txt"));
  CHECK(status_of(recv_answer(peer)) == 200);
  UNSCOPED_INFO("between two requests as well");
  CHECK(peer.recv_until_eof().empty());
}

TEST_CASE("14.4 a client that sends an empty line behind a body is idle", "[14.4]") {
  const site_server server{{"--head-timeout-ms", "100", "--idle-timeout-ms", "300"}};
  const std::string post = "POST /-/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
  for (const std::string empty_line : {"\r\n", "\r"}) {
    client peer = server.connect();
    peer.send_all(post + empty_line);
    CHECK(body_of(recv_answer(peer)) == "hello");
    UNSCOPED_INFO("an empty line begins no head (rfc9112, 2.2): the limit is that of an idle one");
    CHECK(peer.recv_until_eof().empty());
  }
  client peer = server.connect();
  peer.send_all(post + "\r\nG");
  CHECK(body_of(recv_answer(peer)) == "hello");
  UNSCOPED_INFO("a byte behind the empty line begins a head");
  CHECK(status_of(peer.recv_until_eof()) == 408);
}

TEST_CASE("14.4 a client that does not read is cut off", "[14.4]") {
  const site_server server{{"--write-timeout-ms", "100"}};
  server.folder.write("huge.bin", pattern(5, 2 * kernel_buffer_bytes_max()));
  const std::size_t fds_before = server.process.open_fd_count();
  client stuck = server.connect(small_buffers);
  stuck.send_all(site_server::request("/huge.bin"));
  UNSCOPED_INFO("a send that waits for room has a limit of its own");
  CHECK(eventually(2 * step_deadline, [&] {
    return server.counter("connections") > 1 && server.process.open_fd_count() <= fds_before;
  }));
  UNSCOPED_INFO("an EOF would say that this is all of the file");
  CHECK(stuck.wait_for_end() == ending::reset);
}
