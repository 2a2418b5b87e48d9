// SPDX-License-Identifier: MIT
// Task 07.5, and each operation on sockets, time and rings: what it does, and how it fails.
#include "operations.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bytes.hpp"
#include "file_operations.hpp"
#include "io_context.hpp"
#include "large_span.hpp"
#include "listen.hpp"
#include "process_counts.hpp"
#include "result_of.hpp"
#include "socket_pair.hpp"
#include "watchdog.hpp"

using namespace std::chrono_literals;
using course_test::bytes_of;
using course_test::loopback;
using course_test::result_of;
using course_test::text_of;
using course_test::watchdog;
using uring::io_context;
using uring::io_request;
using uring::io_result;
using uring::task;

namespace {

struct fixture {
  io_context context;
  course_test::socket_pair sockets = course_test::tcp_pair();
  std::array<std::byte, 256> buffer{};

  template <typename Prepare>
  int result(io_request<Prepare> request) {
    return context.run(result_of(request));
  }

  int ours() const { return sockets.ours.get(); }
  int theirs() const { return sockets.theirs.get(); }
};

task<> tick(io_context& context, std::chrono::milliseconds period, int times, int& ticks) {
  for (; ticks < times; ++ticks) {
    const io_result passed = co_await uring::timeout_op(context, period);
    if (passed.error() != ETIME) FAIL_CHECK("a tick ended with " << passed.error());
  }
}

task<> time_out(io_context& context, std::chrono::milliseconds after, int& error) {
  const io_result ended = co_await uring::timeout_op(context, after);
  error = ended.error();
}

task<> nops(io_context& context, int count) {
  for (int i = 0; i < count; ++i) (void)co_await uring::nop_op(context);
}

// Notes what another ring sends, and then stops its own.
class stopping_receiver final : public uring::message_receiver {
 public:
  explicit stopping_receiver(io_context& context) : context_{context} {
    context.set_receiver(this);
  }
  ~stopping_receiver() { context_.set_receiver(nullptr); }

  void on_message(const uring::message& arrived) override {
    last = arrived;
    context_.stop();
  }

  std::optional<uring::message> last;

 private:
  io_context& context_;
};

task<> wait_an_hour(io_context& context, int& error) {
  const io_result ended = co_await uring::timeout_op(context, 1h);
  error = ended.error();
}

task<> receive_one(io_context& context, int socket, std::span<std::byte> into, int& bytes) {
  const io_result received = co_await uring::recv_op(context, socket, into);
  bytes = received.fd();
}

// From a ring of its own, which ends with it.
void send_message_to(io_context& receiver) {
  io_context context;
  REQUIRE(context.run(result_of(uring::msg_ring_op(context, receiver, 42, 17))) == 0);
}

}  // namespace

TEST_CASE("07.5 recv receives the bytes that have come and fit", "[07.5]") {
  const watchdog deadline{5s, "recv must not wait for more than has come"};
  fixture test;
  REQUIRE(::send(test.ours(), "hello", 5, MSG_NOSIGNAL) == 5);
  UNSCOPED_INFO("a count of bytes: give the kernel the span's address and its size in bytes");
  REQUIRE(test.result(uring::recv_op(test.context, test.theirs(), test.buffer)) == 5);
  CHECK(text_of(std::span{test.buffer}.first(5)) == "hello");

  const std::string long_text(200, 'x');
  REQUIRE(::send(test.ours(), long_text.data(), 200, MSG_NOSIGNAL) == 200);
  UNSCOPED_INFO("a count of bytes: give the kernel the span's address and its size in bytes");
  CHECK(test.result(uring::recv_op(test.context, test.theirs(), test.buffer)) == 200);
}

TEST_CASE("07.5 recv passes its flags on", "[07.5]") {
  const watchdog deadline{5s, "recv must not wait for more than has come"};
  fixture test;
  REQUIRE(::send(test.ours(), "once", 4, MSG_NOSIGNAL) == 4);
  REQUIRE(test.result(uring::recv_op(test.context, test.theirs(), test.buffer, MSG_PEEK)) == 4);
  REQUIRE(::shutdown(test.ours(), SHUT_WR) == 0);
  UNSCOPED_INFO("MSG_PEEK leaves the bytes where they are; are the flags given to the kernel?");
  CHECK(test.result(uring::recv_op(test.context, test.theirs(), test.buffer)) == 4);
  UNSCOPED_INFO("EOF is a count of 0");
  CHECK(test.result(uring::recv_op(test.context, test.theirs(), test.buffer)) == 0);
}

TEST_CASE("07.5 a failed recv gives its error", "[07.5]") {
  fixture test;
  CHECK(test.result(uring::recv_op(test.context, -1, test.buffer)) == -EBADF);
  test.sockets.ours = {};
  course_test::socket_pair reset = course_test::tcp_pair();
  course_test::reset_on_close(reset.ours.get());
  reset.ours.reset();
  CHECK(test.result(uring::recv_op(test.context, reset.theirs.get(), test.buffer)) == -ECONNRESET);
}

TEST_CASE("07.5 more bytes than a request can name are a short transfer", "[07.5]") {
  const watchdog deadline{5s, "a length of 4 GiB has become one of 0?"};
  fixture test;
  const course_test::large_span large;
  REQUIRE(::send(test.ours(), "abc", 3, MSG_NOSIGNAL) == 3);
  UNSCOPED_INFO("an SQE has 32 bits for the length: 4 GiB must not become 0, which reads as EOF");
  CHECK(test.result(uring::recv_op(test.context, test.theirs(), large.bytes())) == 3);
  constexpr int at_once = MSG_NOSIGNAL | MSG_DONTWAIT;
  UNSCOPED_INFO(
      "a send of 4 GiB must not send nothing: a loop that sends the rest would never end");
  CHECK(test.result(uring::send_op(test.context, test.ours(), large.bytes(), at_once)) > 0);
}

TEST_CASE("07.5 a duration becomes whole seconds and the nanoseconds that are left", "[07.5]") {
  struct row {
    std::chrono::nanoseconds duration;
    long long seconds;
    long long nanoseconds;
  };
  for (const row& each : {row{0ns, 0, 0},
                          {1ns, 0, 1},
                          {999'999'999ns, 0, 999'999'999},
                          {1s, 1, 0},
                          {1500ms, 1, 500'000'000},
                          {10s + 1ns, 10, 1},
                          {4350ms, 4, 350'000'000},
                          {100h, 360'000, 0},
                          {876'000h, 3'153'600'000, 0}}) {
    const ::__kernel_timespec made = uring::to_timespec(each.duration);
    UNSCOPED_INFO(
        each.duration.count()
        << " ns; the kernel refuses tv_nsec above 999,999,999, and tv_sec is longer than an int");
    CHECK(made.tv_sec == each.seconds);
    UNSCOPED_INFO(each.duration.count()
                  << " ns; no nanosecond may get lost, as it may in a double");
    CHECK(made.tv_nsec == each.nanoseconds);
  }
}

TEST_CASE("07.5 the kernel gets the address of a time that lives as long as the wait", "[07.5]") {
  const uring::prepare_timeout prepare{uring::to_timespec(2s)};
  ::io_uring_sqe sqe{};
  prepare(sqe);
  UNSCOPED_INFO(
      "a local variable is gone when the request is submitted, and all timeouts would share a "
      "static one: give it &limit");
  CHECK(sqe.addr == reinterpret_cast<std::uint64_t>(&prepare.limit));
  CHECK(sqe.opcode == IORING_OP_TIMEOUT);
  UNSCOPED_INFO(
      "pass 0 as flags. With IORING_TIMEOUT_ETIME_SUCCESS, for example, a timeout that has ended "
      "no longer cancels the requests that are linked to it (IOSQE_IO_LINK)");
  CHECK(sqe.timeout_flags == 0);
}

TEST_CASE("07.5 a time that has passed already is over at once", "[07.5]") {
  const watchdog deadline{5s, "a task that sleeps until some time may come late: that is no error"};
  io_context context;
  for (const std::chrono::milliseconds after : {0ms, -1ms, -100'000ms}) {
    int error = 0;
    context.run(time_out(context, after, error));
    UNSCOPED_INFO("after " << after.count() << " ms");
    CHECK(error == ETIME);
  }
}

TEST_CASE("07.5 a timeout ends when its time has passed, whatever else completes", "[07.5]") {
  const watchdog deadline{5s, "it was to be 40 ms: are they seconds?"};
  io_context context;
  int error = 0;
  const auto start = std::chrono::steady_clock::now();
  context.spawn(time_out(context, 40ms, error));
  context.spawn(nops(context, 10));
  context.run();
  const auto took = std::chrono::steady_clock::now() - start;
  UNSCOPED_INFO("0 means that a count of completions ended it: pass a count of 0, for none");
  CHECK(error == ETIME);
  UNSCOPED_INFO("shorter than 40 ms: are the nanoseconds right?");
  CHECK(took >= 40ms);
}

TEST_CASE("07.5 a task ticks while everybody else is idle", "[07.5]") {
  const watchdog deadline{5s, "ten ticks of 20 ms"};
  io_context context;
  int ticks = 0;
  int error = 0;
  const auto used = course_test::cpu_time();
  context.spawn(tick(context, 20ms, 10, ticks));
  context.spawn(time_out(context, 150ms, error));
  context.run();
  CHECK(ticks == 10);
  CHECK(error == ETIME);
  UNSCOPED_INFO("the thread sleeps between two ticks");
  CHECK(course_test::cpu_time() - used < 100ms);
}

TEST_CASE("07 nop completes at once") {
  fixture test;
  CHECK(test.result(uring::nop_op(test.context)) == 0);
}

TEST_CASE("07 poll completes with the events that are ready, and reads nothing") {
  const watchdog deadline{5s, "a byte is there to be read"};
  fixture test;
  REQUIRE(::send(test.ours(), "x", 1, MSG_NOSIGNAL) == 1);
  CHECK((test.result(uring::poll_op(test.context, test.theirs(), POLLIN)) & POLLIN) != 0);
  CHECK(test.result(uring::recv_op(test.context, test.theirs(), test.buffer)) == 1);
  CHECK(test.result(uring::poll_op(test.context, -1, POLLIN)) == -EBADF);
}

TEST_CASE("07 accept completes with a client's descriptor") {
  const watchdog deadline{5s, "a client is waiting"};
  fixture test;
  const common::unique_fd listener = common::listen_on("127.0.0.1", 0);
  const ::sockaddr_in address = loopback(course_test::port_of(listener.get()));
  const common::unique_fd client{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  REQUIRE(::connect(client.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address) ==
          0);
  const common::unique_fd accepted{test.result(uring::accept_op(test.context, listener.get()))};
  REQUIRE(accepted.valid());
  CHECK((::fcntl(accepted.get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK((::fcntl(accepted.get(), F_GETFL) & O_NONBLOCK) == 0);
  CHECK(test.result(uring::accept_op(test.context, test.ours())) == -EINVAL);
}

TEST_CASE("07 connect completes when the peer has accepted or refused") {
  const watchdog deadline{5s, "the peer is on this machine"};
  fixture test;
  ::sockaddr_in address{};
  {
    const common::unique_fd listener = common::listen_on("127.0.0.1", 0);
    address = loopback(course_test::port_of(listener.get()));
    const common::unique_fd client{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    CHECK(test.result(uring::connect_op(test.context, client.get(),
                                        reinterpret_cast<const ::sockaddr*>(&address),
                                        sizeof address)) == 0);
  }
  const common::unique_fd client{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  CHECK(test.result(uring::connect_op(test.context, client.get(),
                                      reinterpret_cast<const ::sockaddr*>(&address),
                                      sizeof address)) == -ECONNREFUSED);
}

TEST_CASE("07 send sends, and says how many bytes it took") {
  fixture test;
  REQUIRE(test.result(uring::send_op(test.context, test.theirs(), bytes_of("hello"))) == 5);
  CHECK(::recv(test.ours(), test.buffer.data(), test.buffer.size(), 0) == 5);
  course_test::reset_on_close(test.ours());
  test.sockets.ours.reset();
  (void)test.result(uring::send_op(test.context, test.theirs(), bytes_of("x")));
  UNSCOPED_INFO("MSG_NOSIGNAL: an error, and no SIGPIPE");
  CHECK(test.result(uring::send_op(test.context, test.theirs(), bytes_of("x"))) == -EPIPE);
}

TEST_CASE("07 sendmsg and recvmsg gather and scatter") {
  const watchdog deadline{5s, "six bytes were sent"};
  fixture test;
  std::string one = "one";
  std::string two = "two";
  std::array<::iovec, 2> parts{uring::to_iovec(std::as_writable_bytes(std::span{one})),
                               uring::to_iovec(std::as_writable_bytes(std::span{two}))};
  ::msghdr out{};
  out.msg_iov = parts.data();
  out.msg_iovlen = parts.size();
  REQUIRE(test.result(uring::sendmsg_op(test.context, test.theirs(), out)) == 6);

  std::array<std::byte, 4> first{};
  std::array<std::byte, 8> second{};
  std::array<::iovec, 2> room{uring::to_iovec(first), uring::to_iovec(second)};
  ::msghdr in{};
  in.msg_iov = room.data();
  in.msg_iovlen = room.size();
  REQUIRE(test.result(uring::recvmsg_op(test.context, test.ours(), in)) == 6);
  CHECK(text_of(first) + text_of(std::span{second}.first(2)) == "onetwo");
  CHECK(test.result(uring::recvmsg_op(test.context, -1, in)) == -EBADF);
  CHECK(test.result(uring::sendmsg_op(test.context, -1, out)) == -EBADF);
}

TEST_CASE("07 shutdown gives the peer the end of the stream") {
  fixture test;
  CHECK(test.result(uring::shutdown_op(test.context, test.theirs(), SHUT_WR)) == 0);
  CHECK(::recv(test.ours(), test.buffer.data(), test.buffer.size(), 0) == 0);
  CHECK(test.result(uring::shutdown_op(test.context, -1, SHUT_WR)) == -EBADF);
}

TEST_CASE("07 a message brings a word and a value to the ring of another thread") {
  const watchdog deadline{5s, "the message was sent"};
  io_context context;
  int error = 0;
  stopping_receiver receiver{context};
  context.spawn(wait_an_hour(context, error));
  int sent = -1;
  std::jthread sender{[&] {
    io_context own;
    sent = own.run(result_of(uring::msg_ring_op(own, context, 0xabcd'ef01'2345'6788, -5)));
  }};
  context.run();
  sender.join();
  CHECK(sent == 0);
  REQUIRE(receiver.last.has_value());
  CHECK(receiver.last->word == 0xabcd'ef01'2345'6788);
  CHECK(receiver.last->value == -5);
  CHECK(error == ECANCELED);
  CHECK(context.in_flight() == 0);
}

TEST_CASE("07 a message that nobody expects comes before anything is in flight, and harms nobody") {
  const watchdog deadline{5s, "a message is not waited for, and wakes no task"};
  for (const uring::ring_mode mode : {uring::ring_mode::plain, uring::ring_mode::defer}) {
    io_context receiver{{.mode = mode}};
    send_message_to(receiver);
    receiver.run();
    CHECK(receiver.in_flight() == 0);
    receiver.run(nops(receiver, 3));
    CHECK(receiver.in_flight() == 0);
    send_message_to(receiver);  // and its ring ends with one that it has not looked at
  }
}

TEST_CASE("07 a message that nobody expects comes while tasks wait, and harms nobody") {
  const watchdog deadline{5s, "a message is not waited for, and wakes no task"};
  fixture test;
  int bytes = 0;
  test.context.spawn(receive_one(test.context, test.theirs(), test.buffer, bytes));
  const std::size_t in_flight = test.context.in_flight();
  for (int i = 0; i < 3; ++i) send_message_to(test.context);
  test.context.turn();
  CHECK(bytes == 0);
  UNSCOPED_INFO("the recv has not completed: a message must not be counted as a completion");
  CHECK(test.context.in_flight() == in_flight);
  REQUIRE(::send(test.ours(), "x", 1, MSG_NOSIGNAL) == 1);
  test.context.run();
  CHECK(bytes == 1);
  CHECK(test.context.in_flight() == 0);
}
