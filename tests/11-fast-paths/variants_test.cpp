// SPDX-License-Identifier: MIT
// The kinds of echo, where they differ: the test is the kernel. The echo contract shows that all of
// them keep what every server keeps.
#include <liburing.h>
#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cancel_source.hpp"
#include "child_process.hpp"
#include "descriptor_limit.hpp"
#include "io_context.hpp"
#include "manual_ring.hpp"
#include "variants.hpp"

using Catch::Matchers::ContainsSubstring;
using course_test::bytes_of;
using course_test::cqe_more;
using course_test::exited;
using course_test::finished_program;
using course_test::manual_ring;
using course_test::program;
using course_test::run_program;
using course_test::socket_number;
using uring::buffer_options;
using uring::cancel_source;
using uring::echo_function;
using uring::io_context;
using uring::own_buffers;
using uring::task;

namespace {

constexpr std::uint32_t is_notification = IORING_CQE_F_NOTIF;

// One client of a kind, and how far its echo has come.
template <typename Shared>
class one_client {
 public:
  explicit one_client(echo_function<Shared>* echo, std::size_t buffers = 4)
      : shared_{context, buffer_options{.count = buffers, .bytes = 64}}, echo_{echo} {
    add();
  }
  one_client(one_client&&) = delete;
  // Requests that the test has not answered end now, and with them the frames.
  ~one_client() {
    while (ended_ < started_ && kernel.waiting() > 0) kernel.answer(kernel.take(), -ECANCELED);
  }

  void add() {
    ++started_;
    context.spawn(run());
  }
  [[nodiscard]] int ended() const noexcept { return ended_; }

  io_context context;
  cancel_source given_up{context};
  cancel_source waiting{uring::child_of{given_up}};
  manual_ring kernel{context};

 private:
  task<> run() {
    co_await echo_({.waiting = waiting,
                    .given_up = given_up,
                    .file = {.number = socket_number, .flags = Shared::file_flags}},
                   shared_);
    ++ended_;
  }

  Shared shared_;
  echo_function<Shared>* echo_;
  int started_ = 0;
  int ended_ = 0;
};

finished_program run_variants(const std::vector<std::string>& arguments) {
  return run_program(program("11-variants"), arguments);
}

}  // namespace

TEST_CASE("11 a linked echo sends and receives in one submission", "[11]") {
  one_client<own_buffers> client{&uring::echo_linked};
  client.kernel.answer(client.kernel.take(), "hello");
  REQUIRE(client.kernel.waiting() == 2);
  const ::io_uring_sqe send = client.kernel.take();
  const ::io_uring_sqe recv = client.kernel.take();
  CHECK(bytes_of(send) == "hello");
  UNSCOPED_INFO("the recv is to wait for the send: IOSQE_IO_LINK on the send, and on it alone");
  CHECK((send.flags & IOSQE_IO_LINK) != 0);
  CHECK((recv.flags & IOSQE_IO_LINK) == 0);
  UNSCOPED_INFO("without MSG_WAITALL a short send does not break the link, and its rest is lost");
  CHECK((send.msg_flags & MSG_WAITALL) != 0);
  client.kernel.answer(send, 5);
  client.kernel.answer(recv, "again");
  const ::io_uring_sqe next = client.kernel.take();
  CHECK(bytes_of(next) == "again");
  client.kernel.answer(next, -ECONNRESET);
}

TEST_CASE("11 a link that broke is made again, with the bytes that were not sent", "[11]") {
  one_client<own_buffers> client{&uring::echo_linked};
  client.kernel.answer(client.kernel.take(), "hello");
  const ::io_uring_sqe send = client.kernel.take();
  const ::io_uring_sqe recv = client.kernel.take();
  client.kernel.turn({{send.user_data, 2}, {recv.user_data, -ECANCELED}});
  REQUIRE(client.kernel.waiting() == 2);
  UNSCOPED_INFO("the recv did nothing, so the rest still stands in the buffer");
  const ::io_uring_sqe rest = client.kernel.take();
  CHECK(bytes_of(rest) == "llo");
  client.kernel.answer(rest, -ECONNRESET);
}

TEST_CASE("11 a linked echo whose client is lost ends", "[11]") {
  one_client<own_buffers> client{&uring::echo_linked};
  client.kernel.answer(client.kernel.take(), "hello");
  const ::io_uring_sqe send = client.kernel.take();
  const ::io_uring_sqe recv = client.kernel.take();
  client.kernel.turn({{send.user_data, -EPIPE}, {recv.user_data, -ECANCELED}});
  CHECK(client.ended() == 1);
}

TEST_CASE("11 a zero-copy echo receives again when the notification has come", "[11]") {
  one_client<own_buffers> client{&uring::echo_zero_copy};
  client.kernel.answer(client.kernel.take(), "hello");
  const ::io_uring_sqe send = client.kernel.take();
  CHECK(send.opcode == IORING_OP_SEND_ZC);
  client.kernel.answer(send, 5, cqe_more);
  UNSCOPED_INFO("the kernel still sends out of the buffer that this recv would write to");
  REQUIRE(client.kernel.waiting() == 0);
  client.kernel.answer(send, 0, is_notification);
  const ::io_uring_sqe next = client.kernel.take();
  CHECK(next.opcode == IORING_OP_RECV);
  client.kernel.answer(next, 0);
  CHECK(client.ended() == 1);
}

TEST_CASE("11 a zero-copy echo that may lock no more memory is sent by a copy", "[11]") {
  one_client<own_buffers> client{&uring::echo_zero_copy};
  client.kernel.answer(client.kernel.take(), "hello");
  client.kernel.answer(client.kernel.take(), -ENOMEM);
  const ::io_uring_sqe plain = client.kernel.take();
  CHECK(plain.opcode == IORING_OP_SEND);
  CHECK(bytes_of(plain) == "hello");
  client.kernel.answer(plain, 5);
  CHECK(client.kernel.waiting() == 1);
}

TEST_CASE("11 a client for which no registered buffer is left gets the plain echo", "[11]") {
  one_client<uring::fixed_places> client{&uring::echo_fixed, 1};
  client.add();
  const ::io_uring_sqe fixed = client.kernel.take();
  const ::io_uring_sqe plain = client.kernel.take();
  CHECK(fixed.opcode == IORING_OP_READ_FIXED);
  CHECK(plain.opcode == IORING_OP_RECV);
  client.kernel.answer(plain, 0);
  client.kernel.answer(fixed, 0);
  client.add();
  const ::io_uring_sqe again = client.kernel.take();
  UNSCOPED_INFO("the first client has left, and its place is free");
  CHECK(again.opcode == IORING_OP_READ_FIXED);
  client.kernel.answer(again, 0);
}

TEST_CASE("11 a client for which no pipe is left gets the plain echo", "[11]") {
  one_client<own_buffers> client{&uring::echo_splice};
  const course_test::room_for_descriptors none{0};
  client.add();
  UNSCOPED_INFO("the first has a pipe, and waits for bytes to put into it");
  const ::io_uring_sqe poll = client.kernel.take();
  const ::io_uring_sqe recv = client.kernel.take();
  CHECK(poll.opcode == IORING_OP_POLL_ADD);
  CHECK(recv.opcode == IORING_OP_RECV);
  client.kernel.answer(poll, -ECANCELED);
  client.kernel.answer(recv, 0);
}

TEST_CASE("11 a message that went into the pipe in part comes out in part, and then goes on",
          "[11]") {
  one_client<own_buffers> client{&uring::echo_splice};
  client.kernel.answer(client.kernel.take(), POLLIN);
  client.kernel.answer(client.kernel.take(), 5);
  const ::io_uring_sqe out = client.kernel.take();
  CHECK(out.fd == socket_number);
  CHECK(out.len == 5);
  client.kernel.answer(out, 2);
  const ::io_uring_sqe rest = client.kernel.take();
  UNSCOPED_INFO("three bytes are left in the pipe: a wait for more would keep them there");
  CHECK(rest.opcode == IORING_OP_SPLICE);
  CHECK(rest.len == 3);
  client.kernel.answer(rest, -EPIPE);
  CHECK(client.ended() == 1);
}

TEST_CASE("11 --help says what each kind is", "[11]") {
  const finished_program help = run_variants({"--help"});
  CHECK(help.status == exited(0));
  for (const uring::variant& each : uring::variants) {
    CHECK_THAT(help.stdout_text, ContainsSubstring("  " + std::string{each.name} + " "));
    CHECK_THAT(help.stdout_text, ContainsSubstring(std::string{each.summary}));
  }
}

TEST_CASE("11 a kind that does not exist ends it with status 2 and a sentence", "[11]") {
  const finished_program refused = run_variants({"--kind", "telepathy"});
  CHECK(refused.status == exited(2));
  CHECK_THAT(refused.stderr_text, ContainsSubstring("--kind: takes one of recv-send, recvmsg"));
}

TEST_CASE("11 the facts are numbers", "[11]") {
  const finished_program facts = run_program(program("11-facts"), {});
  INFO(facts.stderr_text);
  CHECK(facts.status == exited(0));
  for (const std::string_view line :
       {"  RECV: 0\n", "linked to a POLL_ADD: 0\n", "completions, linked: 8\n",
        "completions, linked and successes skipped: 1\n",
        "a WRITE of 4096 after a READ of 100: 0 bytes, ECANCELED",
        "a SEND of 512 after a RECV of 10: 512\n", "SEND_ZC from a registered buffer: 10\n"}) {
    CHECK_THAT(facts.stdout_text, ContainsSubstring(std::string{line}));
  }
}

TEST_CASE("11 every request of 11-requests is measured, in one call and in two", "[11]") {
  for (const std::string request : {"nop", "timer", "read", "read-fixed"}) {
    for (const std::string calls : {"one", "two"}) {
      const finished_program run = run_program(
          program("11-requests"), {"--request", request, "--calls", calls, "--count", "3"});
      INFO(request << ", " << calls << ": " << run.stderr_text);
      CHECK(run.status == exited(0));
      CHECK_THAT(run.stdout_text, ContainsSubstring("ns per request: "));
    }
  }
}
