// SPDX-License-Identifier: MIT
// Task 11.5: a send with two completions, and the buffer that is the kernel's until the second.
#include <liburing.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bytes.hpp"
#include "cancel_source.hpp"
#include "connection_reset.hpp"
#include "feature.hpp"
#include "io_context.hpp"
#include "manual_ring.hpp"
#include "receiver.hpp"
#include "registered_buffers.hpp"
#include "ring_modes.hpp"
#include "socket_pair.hpp"
#include "task.hpp"
#include "test_folder.hpp"
#include "turns.hpp"
#include "when_all.hpp"
#include "zero_copy.hpp"

using namespace std::chrono_literals;
using course_test::cqe_more;
using course_test::manual_ring;
using course_test::receiver;
using course_test::socket_number;
using course_test::socket_pair;
using uring::cancel_source;
using uring::io_context;
using uring::io_handle;
using uring::task;
using uring::zero_copy_sent;

namespace {

constexpr std::uint32_t notification = IORING_CQE_F_NOTIF;

struct send_ending {
  bool has_ended = false;
  int res = 0;
  bool was_copied = false;
};

task<> send(io_handle io, int socket, std::span<const std::byte> bytes, unsigned flags,
            send_ending& into) {
  const zero_copy_sent sent = co_await uring::send_zc_op{io, socket, bytes, flags};
  into = {true, sent.result ? sent.result.fd() : -sent.result.error(), sent.was_copied};
}

// One whose completions the test brings.
struct zero_copy_sending {
  io_context context;
  manual_ring kernel{context};
  std::array<std::byte, 100> bytes{};
  send_ending ended;

  explicit zero_copy_sending(unsigned flags = 0) {
    context.spawn(send(context, socket_number, bytes, flags, ended));
    const ::io_uring_sqe sqe = kernel.take();
    request = {sqe.user_data, sqe.msg_flags, sqe.ioprio, sqe.opcode};
  }

  void answer(std::int32_t res, std::uint32_t flags = 0) {
    kernel.turn({{request.user_data, res, flags}});
  }

  struct {
    std::uint64_t user_data;
    std::uint32_t msg_flags;
    std::uint16_t ioprio;
    std::uint8_t opcode;
  } request{};
};

// What arrives until `bytes` have come.
std::string receive(int socket, std::size_t bytes) {
  std::string all(bytes, '\0');
  std::size_t have = 0;
  while (have < bytes) {
    const ::ssize_t got = ::recv(socket, all.data() + have, bytes - have, 0);
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  all.resize(have);
  return all;
}

}  // namespace

TEST_CASE("11.5 the frame goes on after the notification, with the count of the send", "[11.5]") {
  zero_copy_sending test;
  CHECK(test.request.opcode == IORING_OP_SEND_ZC);
  CHECK(test.request.msg_flags == MSG_NOSIGNAL);
  test.answer(60, cqe_more);
  UNSCOPED_INFO("the first completion has IORING_CQE_F_MORE: the bytes are still the kernel's");
  REQUIRE_FALSE(test.ended.has_ended);
  CHECK(test.context.in_flight() == 1);
  test.answer(0, notification);
  REQUIRE(test.ended.has_ended);
  UNSCOPED_INFO(
      "0 is the notification's res, and no count: the first completion says how many bytes were "
      "sent");
  CHECK(test.ended.res == 60);
  CHECK(test.context.in_flight() == 0);
}

TEST_CASE("11.5 both completions may come in one turn", "[11.5]") {
  zero_copy_sending test;
  test.kernel.turn(
      {{test.request.user_data, 100, cqe_more}, {test.request.user_data, 0, notification}});
  REQUIRE(test.ended.has_ended);
  CHECK(test.ended.res == 100);
}

TEST_CASE("11.5 a send that fails at once has one completion", "[11.5]") {
  zero_copy_sending test;
  test.answer(-EINVAL);
  UNSCOPED_INFO(
      "there is no IORING_CQE_F_MORE, so no notification follows: a wait for it never ends");
  REQUIRE(test.ended.has_ended);
  CHECK(test.ended.res == -EINVAL);
}

TEST_CASE("11.5 a send that fails may have a notification all the same", "[11.5]") {
  for (const int error : {-EPIPE, -ECONNRESET, -ECANCELED, -ENOMEM}) {
    zero_copy_sending test;
    test.answer(error, cqe_more);
    UNSCOPED_INFO("an error with IORING_CQE_F_MORE: the kernel still has a part of the bytes");
    REQUIRE_FALSE(test.ended.has_ended);
    test.answer(0, notification);
    REQUIRE(test.ended.has_ended);
    CHECK(test.ended.res == error);
  }
}

TEST_CASE("11.5 the notification says whether the bytes were copied, and nothing else", "[11.5]") {
  zero_copy_sending copied{uring::report_usage};
  CHECK((copied.request.ioprio & uring::report_usage) != 0);
  copied.answer(100, cqe_more);
  copied.answer(static_cast<std::int32_t>(uring::usage_copied), notification);
  REQUIRE(copied.ended.has_ended);
  UNSCOPED_INFO("as a number usage_copied is negative, and no error");
  CHECK(copied.ended.res == 100);
  CHECK(copied.ended.was_copied);

  zero_copy_sending kept{uring::report_usage};
  kept.answer(100, cqe_more);
  kept.answer(0, notification);
  REQUIRE(kept.ended.has_ended);
  CHECK_FALSE(kept.ended.was_copied);
}

TEST_CASE("11.5 a canceled source starts no send", "[11.5]") {
  io_context context;
  manual_ring kernel{context};
  cancel_source source{context};
  source.cancel();
  send_ending before;
  context.spawn(send(source, socket_number, {}, 0, before));
  CHECK(before.has_ended);
  CHECK(before.res == -ECANCELED);
  CHECK(kernel.waiting() == 0);

  cancel_source open{context};
  send_ending ended;
  std::array<std::byte, 8> bytes{};
  context.spawn(send(open, socket_number, bytes, 0, ended));
  const ::io_uring_sqe request = kernel.take();
  kernel.answer(request, 8, cqe_more);
  kernel.answer(request, 0, notification);
  REQUIRE(ended.has_ended);
  CHECK(ended.res == 8);
}

TEST_CASE("11.5 a send from a registered buffer names it", "[11.5]") {
  struct check {
    static task<> send(io_context& context, uring::fixed_buffer buffer, send_ending& into) {
      const zero_copy_sent sent = co_await uring::send_zc_op{context, socket_number, buffer};
      into = {true, static_cast<int>(sent.result.count()), sent.was_copied};
    }
  };
  io_context context;
  manual_ring kernel{context};
  std::array<std::byte, 8> bytes{};
  send_ending ended;
  context.spawn(check::send(context, {.bytes = bytes, .index = 5}, ended));
  const ::io_uring_sqe request = kernel.take();
  CHECK((request.ioprio & IORING_RECVSEND_FIXED_BUF) != 0);
  CHECK(request.buf_index == 5);
  kernel.turn({{request.user_data, 8, cqe_more}, {request.user_data, 0, notification}});
  CHECK(ended.res == 8);
}

TEST_CASE("11.5 when the send has returned, its bytes may be overwritten", "[11.5]") {
  struct check {
    static task<std::size_t> send_and_overwrite(io_context& context, int socket,
                                                std::span<std::byte> bytes) {
      const zero_copy_sent sent = co_await uring::send_zc_op{context, socket, bytes};
      std::ranges::fill(bytes, std::byte{'X'});
      co_return sent.result.or_throw("send_zc");
    }
  };
  course_test::require_feature("send_zc");
  for (const uring::ring_options& options : course_test::all_rings) {
    std::vector<std::byte> bytes(8 << 20, std::byte{'A'});
    io_context context{options};
    receiver peer{{}, 20ms};  // by then the socket is full, and the rest is still ours
    const std::size_t sent = context.run(check::send_and_overwrite(context, peer.sender(), bytes));
    const std::string arrived = peer.all();
    UNSCOPED_INFO(
        "the peer reads what was written into the buffer after the send: the first completion says "
        "how much will be sent, and only the notification that it has been");
    CHECK(arrived.find('X') == std::string::npos);
    CHECK(arrived.size() == sent);
  }
}

TEST_CASE("11.5 all bytes arrive, however short each send is", "[11.5]") {
  course_test::require_feature("send_zc");
  const std::string content = course_test::noise(200'000);
  for (const uring::ring_options& options : course_test::all_rings) {
    io_context context{options};
    receiver peer{{.send_buffer_bytes = 4096}};
    context.run(uring::send_all_zc(context, peer.sender(), course_test::bytes_of(content)));
    REQUIRE(course_test::compare_bytes(peer.all(), content) == course_test::identical);
  }
}

TEST_CASE("11.5 an error of the real kernel is the result", "[11.5]") {
  course_test::require_feature("send_zc");
  io_context context;
  std::array<std::byte, 8> bytes{};
  send_ending ended;
  context.run(send(context, -1, bytes, 0, ended));
  CHECK(ended.res == -EBADF);
  const socket_pair local = course_test::unix_pair();
  context.run(send(context, local.theirs.get(), bytes, 0, ended));
  CHECK(ended.res == -EOPNOTSUPP);
  socket_pair gone = course_test::tcp_pair();
  course_test::reset_on_close(gone.ours.get());
  gone.ours.reset();
  context.run(send(context, gone.theirs.get(), bytes, 0, ended));
  CHECK((ended.res == -ECONNRESET || ended.res == -EPIPE));
  CHECK(context.in_flight() == 0);
}

TEST_CASE("11.5 a reset ends the wait for a peer that does not read", "[11.5]") {
  struct check {
    static task<> send_all(io_handle io, cancel_source& source, int socket,
                           std::span<const std::byte> bytes, std::string& ended) {
      const uring::reset_on_cancel hang_up{source, socket};
      const uring::outcome<void> sent = co_await uring::send_all_zc(io, socket, bytes).as_outcome();
      ended = sent.error() == nullptr ? "well" : "with an error";
    }
  };
  course_test::require_feature("send_zc");
  for (const uring::ring_options& options : course_test::all_rings) {
    const std::vector<std::byte> bytes(16 << 20);
    io_context context{options};
    socket_pair pair = course_test::tcp_pair();  // closed before the context waits for it
    cancel_source source{context};
    cancel_source unused{context};
    std::string ended;
    std::jthread rescuer{[&](const std::stop_token& stop) {
      for (int i = 0; i < 300 && !stop.stop_requested(); ++i) std::this_thread::sleep_for(10ms);
      if (stop.stop_requested()) return;
      const ::timeval patience{.tv_sec = 1, .tv_usec = 0};  // it may be that no more comes
      ::setsockopt(pair.ours.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      (void)receive(pair.ours.get(), bytes.size());
    }};
    context.run(uring::when_all(unused,
                                check::send_all(source, source, pair.theirs.get(), bytes, ended),
                                course_test::cancel_after(context, 20, source)));
    rescuer.request_stop();
    CHECK(ended == "with an error");
    context.run(course_test::pass_turns(context, 5));  // the cancel's own completion may come last
    CHECK(context.in_flight() == 0);
    std::array<char, 1 << 16> rest{};
    ::ssize_t got = 1;
    while (got > 0) got = ::recv(pair.ours.get(), rest.data(), rest.size(), 0);
    UNSCOPED_INFO("EOF would tell the peer that it has everything");
    CHECK(got == -1);
    CHECK(errno == ECONNRESET);
  }
}
