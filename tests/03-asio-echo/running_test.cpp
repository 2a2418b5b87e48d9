// SPDX-License-Identifier: MIT
// Task 03.3: N threads, exceptions, and a clean stop.
#include "running.hpp"

#include <unistd.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <exception>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "bytes.hpp"
#include "client.hpp"
#include "eventually.hpp"
#include "hang_guard.hpp"
#include "listen.hpp"
#include "logged_by.hpp"
#include "patience.hpp"
#include "process_counts.hpp"
#include "sanitized.hpp"
#include "scripted_calls.hpp"
#include "server_process.hpp"
#include "socket_pair.hpp"
#include "stack_use.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using course_test::client;
using course_test::exited;
using course_test::hang_guard;
using course_test::killed_by;
using course_test::logged_by;
using course_test::program;
using course_test::server_process;

namespace {

std::vector<std::string> every_server() {
  return GENERATE(std::vector<std::string>{}, std::vector<std::string>{"--callbacks"},
                  std::vector<std::string>{"--threads", "2"},
                  std::vector<std::string>{"--callbacks", "--threads", "2"});
}

// N threads wait for each other here. They have met only if all of them came.
struct rendezvous {
  void arrive() {
    ++arrived;
    if (course_test::eventually(2s, [this] { return arrived == expected; })) ++met;
  }

  int expected;
  std::atomic<int> arrived = 0;
  std::atomic<int> met = 0;
};

// Sends until the server has taken nothing for a while, and reads no echo. A buffer that is full
// once proves nothing: the server may only be slow.
void stall(server_process& server, client& peer) {
  const std::string much(1024 * 1024, 'x');
  int refusals = 0;
  std::string went_wrong = "it took all that came, and should wait until its echoes are read";
  bool stalled = false;
  try {
    stalled = course_test::eventually(10s, [&] {
      refusals = peer.send_some(much) == 0 ? refusals + 1 : 0;
      return refusals == 100;
    });
  } catch (const course_test::client_error& error) {
    went_wrong = error.what();
  }
  UNSCOPED_INFO("the session of a client that only sends (tasks 03.1 and 03.2): " << went_wrong);
  UNSCOPED_INFO(server.describe());
  REQUIRE(stalled);
}

// How a server ends that hears the signal twice, the second time while a client keeps it.
course_test::exit_status end_by_second(int signal) {
  server_process server{program("03-server")};
  client stalled{server.port(), {.receive_buffer_bytes = 4096}};
  stall(server, stalled);
  server.send_signal(signal);
  UNSCOPED_INFO("the listener is still open after the first signal");
  REQUIRE(course_test::eventually(1s, [&] {
    try {
      const client late{server.port()};
      return false;
    } catch (const course_test::client_error&) {
      return true;
    }
  }));
  return server.stop(signal, 500ms);
}

}  // namespace

TEST_CASE("03.3 a handler that throws does not end the loop", "[03.3]") {
  const hang_guard guard{"when run() has returned there is no work left: return, too"};
  asio::io_context io;
  bool reached = false;
  asio::post(io, [] { throw std::runtime_error{"on purpose"}; });
  asio::post(io, [&reached] { reached = true; });
  UNSCOPED_INFO("run() lets an exception out: catch it, and call run() again");
  CHECK_NOTHROW(completion::run_to_the_end(io));
  UNSCOPED_INFO("the handler after the one that threw was never run");
  CHECK(reached);
}

TEST_CASE("03.3 whatever a handler throws, the loop goes on and the log names it", "[03.3]") {
  const hang_guard guard{"when run() has returned there is no work left: return, too"};
  asio::io_context io;
  asio::post(io, [] { throw std::runtime_error{"on purpose"}; });
  UNSCOPED_INFO("a handler threw std::runtime_error: log its what(), or nobody learns of it");
  CHECK_THAT(logged_by([&] { completion::run_to_the_end(io); }), ContainsSubstring("on purpose"));

  io.restart();  // for the test alone: run() has returned
  asio::post(io, [] { throw std::logic_error{"a defect"}; });
  std::string named;
  CHECK_NOTHROW(named = logged_by([&] { completion::run_to_the_end(io); }));
  UNSCOPED_INFO(
      "a handler threw std::logic_error, which is no std::runtime_error: `const std::exception&` "
      "takes everything that has a what()");
  CHECK_THAT(named, ContainsSubstring("a defect"));

  io.restart();
  bool reached = false;
  asio::post(io, [] { throw 42; });
  asio::post(io, [&reached] { reached = true; });
  std::string log;
  UNSCOPED_INFO(
      "a handler threw an int, which is no std::exception, and it ended the loop: `catch (...)` "
      "takes whatever is left");
  CHECK_NOTHROW(log = logged_by([&] { completion::run_to_the_end(io); }));
  UNSCOPED_INFO("a handler threw an int, and the log says nothing of it");
  CHECK_FALSE(log.empty());
  UNSCOPED_INFO(
      "a handler threw an int, and the next one never ran: log, and call run() again, in a loop");
  CHECK(reached);
}

TEST_CASE("03.3 thousands of exceptions need no deep stack", "[03.3]") {
  const hang_guard guard{"when run() has returned there is no work left: return, too"};
  asio::io_context io;
  course_test::stack_use stack;
  constexpr int handlers = 5'000;
  int thrown = 0;
  for (int i = 0; i < handlers; ++i) {
    asio::post(io, [&] {
      stack.look();
      ++thrown;
      throw std::runtime_error{"on purpose"};
    });
  }
  UNSCOPED_INFO("an exception got out: however many come, catch each, and call run() again");
  CHECK_NOTHROW((void)logged_by([&] { completion::run_to_the_end(io); }));
  UNSCOPED_INFO("not every handler was run: after each exception, call run() again");
  CHECK(thrown == handlers);
  UNSCOPED_INFO(
      "each exception makes the stack deeper, until it overflows: call run() again in a loop, "
      "which leaves the catch block, and not run_to_the_end() from run_to_the_end()");
  CHECK(stack.bytes() < course_test::stack_use::little);
}

TEST_CASE("03.3 a stop ends the loop, even if a handler throws right after it", "[03.3]") {
  const hang_guard guard{"run() returns at once when io has been stopped: return, too"};
  asio::io_context io;
  bool reached = false;
  asio::post(io, [&io] {
    io.stop();
    throw std::runtime_error{"on purpose"};
  });
  asio::post(io, [&reached] { reached = true; });
  completion::run_to_the_end(io);
  UNSCOPED_INFO(
      "io was stopped and went on: restart() takes a stop back, and must not be called while "
      "another thread is in run(). After an exception, run() needs no restart()");
  CHECK_FALSE(reached);
}

TEST_CASE("03.3 a loop that has nothing to do sleeps", "[03.3]") {
  const hang_guard guard{"io was stopped, and run_to_the_end() has not returned"};
  asio::io_context io;
  const auto more_to_come = asio::make_work_guard(io);
  std::promise<::pid_t> started;
  std::exception_ptr escaped;
  std::jthread loop{[&] {
    asio::post(io, [&] { started.set_value(::gettid()); });
    try {
      completion::run_to_the_end(io);
    } catch (...) {
      escaped = std::current_exception();  // such as the TODO of an unwritten task
    }
  }};
  std::future<::pid_t> tid = started.get_future();
  const bool begun = tid.wait_for(2s * course_test::patience()) == std::future_status::ready;
  const ::pid_t number = begun ? tid.get() : -1;
  const bool slept = begun && course_test::eventually(
                                  2s, [&] { return course_test::process_state(number) == 'S'; });
  io.stop();
  loop.join();
  if (escaped) std::rethrow_exception(escaped);
  REQUIRE(begun);
  UNSCOPED_INFO(
      "there is nothing to do, and the loop keeps a CPU busy: poll() returns at once when no "
      "handler is due, run() sleeps until one is");
  CHECK(slept);
}

TEST_CASE("03.3 N threads run N handlers at the same time", "[03.3]") {
  constexpr int threads = 3;
  asio::io_context io{threads};
  rendezvous meeting{threads};
  const std::size_t before = course_test::thread_count();
  std::atomic<std::size_t> together = 0;
  for (int i = 0; i < threads; ++i) {
    asio::post(io, [&] {
      meeting.arrive();
      together = course_test::thread_count();
    });
  }
  completion::run_on_threads(io, threads);
  UNSCOPED_INFO("handlers waited for each other in vain: do N threads call run()?");
  CHECK(meeting.met == threads);
  if (course_test::sanitized) return;  // a sanitizer's own thread may have joined us
  UNSCOPED_INFO("this thread is one of the N: start threads - 1 others");
  CHECK(together <= before + threads - 1);
}

TEST_CASE("03.3 if one thread cannot be started, those that run are stopped", "[03.3]") {
  const hang_guard guard{
      "a thread could not be started, and the others serve on without it: the vector's destructor "
      "waits for them, so catch, io.stop(), and throw again. A vector that is declared in the try "
      "block waits before the catch: declare it above",
      5};
  asio::io_context io{3};
  const auto more_to_come = asio::make_work_guard(io);
  const course_test::refused_threads after_one{1};
  UNSCOPED_INFO(
      "the system has no thread left: pass on what std::jthread's constructor threw. (If this test "
      "crashed: the destructor of a std::thread that was not joined ends the process)");
  CHECK_THROWS_AS(completion::run_on_threads(io, 3), std::system_error);
}

TEST_CASE("03.3 a handler that throws on another thread does not end the process", "[03.3]") {
  constexpr int threads = 2;
  asio::io_context io{threads};
  rendezvous meeting{threads};
  const auto ours = std::this_thread::get_id();
  for (int i = 0; i < threads; ++i) {
    asio::post(io, [&] {
      meeting.arrive();
      if (std::this_thread::get_id() == ours) return;
      throw std::runtime_error{"on purpose; the other threads must run_to_the_end() as well"};
    });
  }
  completion::run_on_threads(io, threads);
  UNSCOPED_INFO("handlers waited for each other in vain: do N threads call run()?");
  CHECK(meeting.met == threads);
}

TEST_CASE("03.3 a handler that throws on the calling thread does not end its loop", "[03.3]") {
  asio::io_context io{1};
  bool reached = false;
  asio::post(io, [] { throw std::runtime_error{"on purpose"}; });
  asio::post(io, [&reached] { reached = true; });
  UNSCOPED_INFO("run_on_threads() let an exception out: this thread must run_to_the_end(), too");
  CHECK_NOTHROW(completion::run_on_threads(io, 1));
  UNSCOPED_INFO("the handler after the one that threw was never run");
  CHECK(reached);
}

TEST_CASE("03.3 run_on_threads() returns when all of its threads are done", "[03.3]") {
  const hang_guard guard{"only one thread calls run(): start threads - 1 others"};
  static asio::io_context io{2};  // outlives a thread that was left behind
  const auto ours = std::this_thread::get_id();
  std::atomic<bool> returned = false;
  std::atomic<bool> left_behind = false;
  std::atomic<bool> ended = false;
  const std::function<void()> work = [&] {
    if (std::this_thread::get_id() == ours) return asio::post(io, work);  // for the other thread
    io.stop();
    left_behind = course_test::happens_within(300ms, [&] { return returned.load(); });
    ended = true;
  };
  asio::post(io, work);
  completion::run_on_threads(io, 2);
  returned = true;
  REQUIRE(course_test::eventually(2s, [&] { return ended.load(); }));
  UNSCOPED_INFO(
      "run_on_threads() returned while another thread ran a handler, which then uses what main() "
      "destroys: join every thread, as std::jthread's destructor does");
  CHECK_FALSE(left_behind);
}

TEST_CASE("03.3 after SIGTERM the server echoes the bytes that clients have sent, and exits with 0",
          "[03.3]") {
  server_process server{program("03-server"), every_server()};
  std::vector<client> clients = course_test::connect_many(server.port(), 10);
  const std::string words = course_test::pattern(1, 48 * 1024);  // more than one receive takes
  for (client& each : clients) REQUIRE(each.echo("hello") == "hello");
  server.send_signal(SIGSTOP);  // so that the words wait, unread, when SIGTERM comes
  for (client& each : clients) each.send_all(words);
  for (client& each : clients) {
    REQUIRE(course_test::eventually(5s, [&] { return each.unacknowledged_bytes() == 0; }));
  }
  server.send_signal(SIGTERM);
  server.send_signal(SIGCONT);
  for (client& each : clients) {
    UNSCOPED_INFO(
        "cut short: SHUT_RD leaves what has arrived readable, SHUT_RDWR is for the end of "
        "the grace time; a timer that was not given grace_ms expires at once; and no session "
        "runs while begin() sleeps: a handler must not sleep, so wait for grace_ by async_wait()");
    CHECK(course_test::compare_bytes(each.recv_until_eof(), words) == course_test::identical);
  }
  UNSCOPED_INFO(
      "if it is still running: the acceptor is open, or a thread is left behind. If it has "
      "crashed: are the tests of 03.1 and 03.2 green?");
  CHECK(server.wait_for_exit(2s) == exited(0));
}

TEST_CASE("03.3 a stop does not wait for clients that are silent", "[03.3]") {
  server_process server{program("03-server"), every_server()};
  std::vector<client> clients = course_test::connect_many(server.port(), 10);
  for (client& each : clients) REQUIRE(each.echo("hello") == "hello");
  UNSCOPED_INFO(
      "their sessions ended with the grace time: SHUT_RD shows every session an end now, unless "
      "begin() sleeps and holds the thread: a handler must not sleep");
  CHECK(server.stop(SIGTERM, completion::graceful_stop::grace_ms - 100ms) == exited(0));
}

TEST_CASE("03.3 a client that never reads is cut after the grace time", "[03.3]") {
  server_process server{program("03-server"), every_server()};
  client stalled{server.port(), {.receive_buffer_bytes = 4096}};
  stall(server, stalled);
  UNSCOPED_INFO(
      "the session waits to send: when grace_ expires, SHUT_RDWR, within grace_ms, and only if the "
      "wait was not canceled. expires_after() cancels a wait that has begun, so it comes before "
      "async_wait(). A local timer ends with begin(), and cancels its wait: use the member grace_. "
      "(Are 03.1 and 03.2 green? A session must end when its send fails)");
  CHECK(server.stop(SIGTERM, 10s) == exited(0));
}

TEST_CASE("03.3 a second signal ends the server at once", "[03.3]") {
  const int signal = GENERATE(SIGTERM, SIGINT);
  // On a busy machine the grace time may be over before the second signal comes: three tries.
  course_test::exit_status ended = end_by_second(signal);
  for (int tries = 1; tries < 3 && ended == exited(0); ++tries) ended = end_by_second(signal);
  UNSCOPED_INFO(
      "the second signal did not end the server at once: one async_wait reports one signal, so "
      "wait again, on the same set, which must live as long as the wait, and let that handler call "
      "end_at_once(signal). If another signal killed it: pass on the number that the handler was "
      "given");
  CHECK(ended == killed_by(signal));
}

TEST_CASE("03 a session that begins after the last one has ended is cut at once", "[03]") {
  completion::open_sockets sockets;
  const course_test::socket_pair pair = course_test::tcp_pair();
  bool done = false;
  sockets.shut_down_all(SHUT_RD);
  sockets.when_empty([&done] { done = true; });
  REQUIRE(done);
  const completion::open_sockets::entry late{sockets, pair.theirs.get()};
  char byte = 0;
  UNSCOPED_INFO("nobody waits for it any more: it could keep the server from stopping");
  CHECK(::recv(pair.ours.get(), &byte, 1, MSG_DONTWAIT) == 0);
}

TEST_CASE("03 a listener that breaks ends run() and is reported", "[03]") {
  const hang_guard guard{"run() did not return when accept failed with EINVAL"};
  completion::open_sockets sockets;
  asio::io_context io;
  common::unique_fd listener = common::listen_on("127.0.0.1", 0);
  const int fd = listener.get();
  completion::acceptor_loop acceptor{io, asio::make_strand(io), std::move(listener),
                                     completion::style::callbacks, sockets};
  acceptor.accept();
  ::shutdown(fd, SHUT_RDWR);  // accept(2) fails with EINVAL from now on
  io.run();
  CHECK_THROWS_AS(acceptor.throw_if_broken(), std::system_error);
}

TEST_CASE("03 one session serves its client, and run() returns when it has ended", "[03]") {
  const auto style = GENERATE(std::vector<std::string>{}, std::vector<std::string>{"--callbacks"});
  server_process server{program("03-one_session"), style};
  client peer{server.port()};
  CHECK(peer.echo("hello") == "hello");
  peer.shutdown_write();
  UNSCOPED_INFO("an operation is left, or a timer: run() returns when there is none");
  CHECK(server.wait_for_exit(2s) == exited(0));
}

TEST_CASE("03 both tickers of the page take turns, in both styles", "[03]") {
  const auto run = course_test::run_program(program("03-ticks"), {});
  CHECK(run.status == exited(0));
  const std::string turns = "a 1\nb 1\na 2\nb 2\na 3\nb 3\n";
  CHECK(run.stdout_text == "callbacks: both have been started\n" + turns +
                               "coroutines: both have been started\n" + turns);
}
