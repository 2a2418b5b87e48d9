// SPDX-License-Identifier: MIT
// Task 01.4 from inside: what accept and std::thread may do to a server, and seldom do.
#include "thread_server.hpp"

#include <fcntl.h>
#include <sys/time.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "background.hpp"
#include "client.hpp"
#include "errors.hpp"
#include "logged_by.hpp"
#include "process_counts.hpp"
#include "running_server.hpp"
#include "scripted_calls.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using course_test::background;
using course_test::client;
using course_test::eventually;
using course_test::failing_accepts;
using course_test::running_server;

namespace {

constexpr const char* wait_locks_itself =
    "Does run() call wait_for_a_session_to_end() with mutex_ held? It locks mutex_ itself, so it "
    "would wait forever";

// Descriptors of this process that a child program would inherit, "" or one a line.
std::string inheritable_sockets() {
  std::string found;
  for (const auto& [fd, what] : course_test::open_fds()) {
    const bool kept = (::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0;
    if (kept && what.starts_with("socket:"))
      found += "fd " + std::to_string(fd) + ": " + what + "\n";
  }
  return found;
}

// Sockets of this process whose blocking calls give up after a time, "" or one a line.
std::string impatient_sockets() {
  std::string found;
  for (const auto& [fd, what] : course_test::open_fds()) {
    for (const auto& [option, name] :
         {std::pair{SO_RCVTIMEO, "SO_RCVTIMEO"}, std::pair{SO_SNDTIMEO, "SO_SNDTIMEO"}}) {
      ::timeval limit{};
      ::socklen_t size = sizeof limit;
      if (::getsockopt(fd, SOL_SOCKET, option, &limit, &size) == -1) continue;  // no socket
      if (limit.tv_sec != 0 || limit.tv_usec != 0)
        found += "fd " + std::to_string(fd) + ": " + name + "\n";
    }
  }
  return found;
}

}  // namespace

TEST_CASE("01.4 an accepted socket is not handed down to child programs", "[01.4]") {
  running_server server;
  const std::string before = inheritable_sockets();
  client peer{server.port()};
  REQUIRE(peer.echo("x") == "x");
  UNSCOPED_INFO("the client's socket survives exec(): pass SOCK_CLOEXEC to accept4()");
  CHECK(inheritable_sockets() == before);
  UNSCOPED_INFO(
      "between accept() and fcntl() another thread may call fork() and exec(), and the child keeps "
      "the socket: accept4() sets the flag when it makes the socket");
  CHECK((course_test::last_accept_flags() & SOCK_CLOEXEC) == SOCK_CLOEXEC);
}

TEST_CASE("01.4 an accepted socket blocks, because its thread may sleep", "[01.4]") {
  course_test::tcp_listener listener = course_test::listen_on_any_port();
  blocking::thread_server server{std::move(listener.socket)};
  const std::size_t before = course_test::accepts_begun();
  background<void> run{[&] { server.run(); }, [&] { server.stop(); }};
  const bool accepting =
      eventually(2s, [&] { return !run.running() || course_test::accepts_begun() > before; });
  if (!run.running()) run.get();
  UNSCOPED_INFO("accept4() was not called: does a poll() wait before it? accept4() itself sleeps");
  REQUIRE(accepting);
  UNSCOPED_INFO(
      "with SOCK_NONBLOCK the session's first recv() fails with EAGAIN, which looks like a peer "
      "that is gone, and the client is cut: ask accept4() for SOCK_CLOEXEC alone");
  CHECK((course_test::last_accept_flags() & SOCK_NONBLOCK) == 0);
}

TEST_CASE("01.4 a client may be silent for as long as it likes", "[01.4]") {
  running_server server;
  client peer{server.port()};
  REQUIRE(peer.echo("x") == "x");
  UNSCOPED_INFO(
      "the server has set a time limit on a client's socket: then recv() or send() fails with "
      "EAGAIN, which looks like a peer that is gone, and a client that only waits is cut");
  CHECK(impatient_sockets() == "");
}

TEST_CASE("01.4 a failed accept that concerns one client only is passed over", "[01.4]") {
  running_server server;
  for (const int error : {ECONNABORTED, EPROTO, EHOSTUNREACH, ENETDOWN, EINTR}) {
    // So many that a loop that waits at each of them, even briefly, is seen to wait.
    const failing_accepts failures{error, 100};
    client first{server.port()};  // ends the accept that sleeps already; the next hundred fail
    CHECK(first.echo("before") == "before");
    client second{server.port()};
    second.send_all("after");
    const bool answered =
        eventually(2s, [&] { return !server.run().running() || !second.recv_some(1).empty(); });
    const std::string failed = "accept() failed with " + common::describe_errno(error);
    UNSCOPED_INFO(failed << ", which is about that one client: take the next one. "
                            "common::classify_accept_errno knows which are");
    REQUIRE_NOTHROW(server.check_running());
    UNSCOPED_INFO(failed << " a hundred times, and the next client has no echo: does run() wait "
                            "after each? Only out_of_descriptors has to wait");
    REQUIRE(answered);
  }
}

TEST_CASE("01.4 a signal during accept does not end the server", "[01.4]") {
  running_server server;
  server.run().interrupt();
  client peer{server.port()};
  peer.send_all("x");
  const bool answered =
      eventually(2s, [&] { return !server.run().running() || !peer.recv_some(1).empty(); });
  UNSCOPED_INFO("accept() returned -1 with EINTR, which says nothing about any client: try again");
  REQUIRE_NOTHROW(server.check_running());
  CHECK(answered);
}

TEST_CASE("01.4 without a free descriptor the server waits instead of spinning", "[01.4]") {
  for (const int error : {EMFILE, ENFILE, ENOBUFS, ENOMEM}) {
    running_server server;
    const std::string name = common::describe_errno(error);
    {
      const std::size_t waits_before = course_test::timed_waits_begun();
      const failing_accepts failures{error};
      CHECK(client{server.port()}.echo("x") == "x");  // by the accept that sleeps already
      std::this_thread::sleep_for(250ms);             // the time in which a spinning loop shows
      UNSCOPED_INFO(name << " is not about one client, nor does it mean that the listener is "
                            "broken");
      REQUIRE_NOTHROW(server.check_running());
      UNSCOPED_INFO("accept() fails with "
                    << name
                    << " over and over: wait_for_a_session_to_end() before the next attempt, at "
                       "every out_of_descriptors. If you do: is a session started for the -1, "
                       "too, and ends at once? A wait of your own for all sessions to end is over "
                       "at once when there is none");
      REQUIRE(failures.failures() <= 25);  // one each 100 ms, and one for the session that ended
      UNSCOPED_INFO(
          "accept() fails with "
          << name
          << ", and run() waits in a way of its own, such as a sleep, which goes on after a "
             "session has ended: call wait_for_a_session_to_end()");
      REQUIRE(eventually(2s, [&] { return course_test::timed_waits_begun() > waits_before; }));
    }
    UNSCOPED_INFO("descriptors are free again, and no client is accepted. " << wait_locks_itself);
    REQUIRE_NOTHROW(client{server.port()}.echo("and now?", 2s));
  }
}

TEST_CASE("01.4 a stop ends run() without a free descriptor, too", "[01.4]") {
  course_test::tcp_listener listener = course_test::listen_on_any_port();
  const course_test::guarded_server server{std::move(listener.socket)};
  std::optional<failing_accepts> failures{std::in_place, EMFILE};
  background<void> run{[server = server.get()] { server->run(); },
                       [&failures, server = server.get()] {
                         failures.reset();  // EINVAL from the listener that is shut down
                         server->stop();
                       }};
  const bool again = eventually(2s, [&] { return !run.running() || failures->failures() > 1; });
  UNSCOPED_INFO("accept() failed with EMFILE, and was not called again. " << wait_locks_itself);
  REQUIRE(again);
  std::this_thread::sleep_for(250ms);  // the time in which a spinning loop shows
  UNSCOPED_INFO(
      "no client has come yet, and accept() fails with EMFILE over and over: call "
      "wait_for_a_session_to_end() before the next attempt, even if there is no session");
  CHECK(failures->failures() <= 25);
  server.get()->stop();
  UNSCOPED_INFO(
      "stop() was called, and run() goes on: without a free descriptor accept() fails with EMFILE "
      "before the kernel looks at the listener. Ask stopping_ after every failure, not only for "
      "listener_broken");
  REQUIRE(run.finished(2s));
  run.get();
}

TEST_CASE("01.4 a stop leaves each session the time to echo what has arrived", "[01.4]") {
  course_test::tcp_listener listener = course_test::listen_on_any_port();
  const course_test::guarded_server server{std::move(listener.socket)};
  const std::size_t before = course_test::accepts_begun();
  background<void> run{[server = server.get()] { server->run(); },
                       [server = server.get()] { server->stop(); }};
  course_test::held_threads late;  // the session has not begun when the stop comes
  client peer{listener.port};
  peer.send_all("goodbye");
  const bool accepted =
      eventually(2s, [&] { return !run.running() || course_test::accepts_begun() >= before + 2; });
  server.get()->stop();
  UNSCOPED_INFO(
      "stop() was called, and run() goes on, while a session has not ended yet: run() waits for no "
      "session. Leave finish_sessions() to the destructor");
  REQUIRE(run.finished(2s));
  run.get();
  REQUIRE(accepted);
  late.release();
  UNSCOPED_INFO(
      "bytes that had arrived before the stop were not echoed: run() only returns, and converse() "
      "echoes whether or not stopping_ is true. The destructor ends the sessions, and gives each "
      "the time to echo what has arrived");
  CHECK_NOTHROW(peer.recv_exactly(7));
}

TEST_CASE("01.4 a listener that is broken ends run() with an error", "[01.4]") {
  for (const int error : {EINVAL, EBADF, ENOTSOCK, EOPNOTSUPP}) {
    course_test::tcp_listener listener = course_test::listen_on_any_port();
    const failing_accepts failures{error};
    blocking::thread_server server{std::move(listener.socket)};
    background<void> run{[&] { server.run(); }, [&] { server.stop(); }};
    const std::string name = common::describe_errno(error);
    UNSCOPED_INFO("accept() fails with "
                  << name
                  << " at once and forever, and run() tries again forever: for every "
                     "accept_failure::listener_broken, throw_errno(\"accept\")");
    REQUIRE(run.finished(2s));
    UNSCOPED_INFO("accept() failed with "
                  << name
                  << " before any stop(), and run() does not say so: for every "
                     "accept_failure::listener_broken, throw_errno(\"accept\")");
    CHECK_THROWS_MATCHES(run.get(), std::system_error,
                         MessageMatches(ContainsSubstring("accept") && ContainsSubstring(name)));
  }
}

TEST_CASE("01.4 a client for whom there is no thread is dropped, and the others stay", "[01.4]") {
  running_server server;
  const std::size_t before = course_test::accepts_begun();
  client steady{server.port()};
  REQUIRE(steady.echo("before") == "before");
  {
    const course_test::refused_threads no_more;
    UNSCOPED_INFO(
        "std::thread's constructor threw an exception, and it ended the server: catch it "
        "where the thread is made. If you do: is it thrown again, or is the entry that you drop() "
        "not at the place that insert returned?");
    const course_test::ending end = client{server.port()}.wait_for_end(2s);
    // The client's end may be seen before run() has ended, or asks for the next one.
    (void)eventually(
        2s, [&] { return !server.run().running() || course_test::accepts_begun() >= before + 2; });
    REQUIRE_NOTHROW(server.check_running());
    UNSCOPED_INFO("nobody will ever serve this client: drop() it, which closes its socket");
    CHECK(end != course_test::ending::still_open);
  }
  CHECK(steady.echo("after") == "after");
  UNSCOPED_INFO(
      "there are threads again, and no client is accepted. Is mutex_ still locked after drop()? "
      "wait_for_a_session_to_end() locks it itself, and so does every session that ends");
  CHECK_NOTHROW(client{server.port()}.echo("and now?"));
}

TEST_CASE("01.4 the log says when a client is dropped because there is no thread", "[01.4]") {
  running_server server;
  const course_test::refused_threads no_more{1};  // logged_by has the last one
  const std::string log =
      course_test::logged_by([&] { (void)client{server.port()}.wait_for_end(2s); });
  UNSCOPED_INFO(
      "a client was cut, and the log does not say why: call drop(), which logs it, and do not "
      "take the entry out of sessions_ yourself");
  CHECK_THAT(log, ContainsSubstring("no thread for new clients"));
}

TEST_CASE("01.4 a client for whom there is no thread is dropped under the mutex", "[01.4]") {
  const course_test::mutex_watch watch;
  running_server server;
  const course_test::refused_threads no_more;
  CHECK(client{server.port()}.wait_for_end(2s) != course_test::ending::still_open);
  UNSCOPED_INFO(
      "drop() ran without mutex_, and a session that ends at that moment changes sessions_, too: a "
      "lock_guard inside the try is gone in the catch, so make it before the try");
  CHECK(watch.list_changes_without() == 0);
}

TEST_CASE("01.4 a session that ends before start_session returns is joined like the others",
          "[01.4]") {
  UNSCOPED_INFO(
      "the session's thread ran to its end before its entry in sessions_ was complete: hold mutex_ "
      "from before the insert until the thread is stored, and do not detach it");
  running_server server;
  {
    const course_test::fast_threads fast{200ms};
    client hasty{server.port()};
    hasty.close();
    // Accepted only when start_session has returned: by then the hasty one's session has ended.
    CHECK_NOTHROW(client{server.port()}.echo("next"));
  }
  CHECK_NOTHROW(server.check_running());
}

TEST_CASE("01.4 each thread serves the client that it was started for", "[01.4]") {
  UNSCOPED_INFO(
      "the threads began after start_session had returned, and do not serve the client they were "
      "started for: is `self` captured by reference? It ends with start_session: use [this, self]. "
      "Or is it not the place that insert returned?");
  running_server server;
  course_test::held_threads late;
  const std::size_t before = course_test::accepts_begun();
  client first{server.port()};
  client second{server.port()};
  (void)eventually(2s, [&] { return course_test::accepts_begun() >= before + 2; });
  first.send_all("1");
  second.send_all("2");
  late.release();
  std::string came;
  (void)eventually(2s, [&] { return !(came += first.recv_some(1)).empty(); });
  REQUIRE(came == "1");
  CHECK(second.recv_exactly(1) == "2");
}

TEST_CASE("01.4 the list of sessions changes under the mutex alone", "[01.4]") {
  const course_test::mutex_watch watch;
  running_server server;
  CHECK(client{server.port()}.echo("x") == "x");
  UNSCOPED_INFO(
      "sessions_ was changed without mutex_, and a session that ends at that moment changes it, "
      "too: lock before the insert. If you do, has the lock a name? `std::lock_guard{mutex_};` is "
      "gone again at its semicolon");
  CHECK(watch.list_changes_without() == 0);
}

TEST_CASE("01.4 a session's socket is closed under the mutex, by end_session", "[01.4]") {
  const course_test::mutex_watch watch;
  running_server server;
  client leaving{server.port()};
  REQUIRE(leaving.echo("x") == "x");
  leaving.shutdown_write();
  CHECK(leaving.wait_for_end(2s) == course_test::ending::eof);
  UNSCOPED_INFO(
      "converse() closes the socket without mutex_. The erase in end_session closes it, under the "
      "mutex: until then stop() may shut its number down, which must not be another client's yet");
  CHECK(watch.closes_without() == 0);
}

TEST_CASE("01.4 a session holds no mutex while it waits for its client", "[01.4]") {
  const course_test::mutex_watch watch;
  running_server server;
  UNSCOPED_INFO(
      "converse() holds mutex_ during echo_until_eof, so start_session, end_session and the stop "
      "wait for this one client, a deadlock: call echo_until_eof without the mutex");
  CHECK(watch.receives_with() == 0);
}

TEST_CASE("01.4 a server that is destroyed has ended every session and joined every thread",
          "[01.4]") {
  {
    const running_server warm_up;
  }  // a sanitizer adds a thread of its own to the first one
  const std::size_t threads = course_test::thread_count();
  std::vector<client> silent;
  {
    running_server server;
    silent = course_test::connect_many(server.port(), 3);
    for (client& each : silent) REQUIRE(each.echo("x") == "x");
  }
  UNSCOPED_INFO(
      "the server is gone, and threads of its sessions are not: file each under sessions_, where "
      "the destructor ends them, and detach none");
  REQUIRE(eventually(2s, [&] { return course_test::thread_count() <= threads; }));
  for (client& each : silent) CHECK(each.wait_for_end() == course_test::ending::eof);
}
