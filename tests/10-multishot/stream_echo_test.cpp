// SPDX-License-Identifier: MIT
// Task 10.5: the echo out of a stream, above all for a client that does not read. The test is the
// kernel.
#include <liburing.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "bytes.hpp"
#include "cancel_source.hpp"
#include "io_context.hpp"
#include "manual_ring.hpp"
#include "recorded_supply.hpp"
#include "stream_echo.hpp"

using course_test::bytes_of;
using course_test::cqe_more;
using course_test::in_buffer;
using course_test::manual_ring;
using course_test::recorded_supply;
using course_test::scripted_answer;
using course_test::socket_number;
using uring::cancel_source;
using uring::io_context;
using uring::task;

namespace {

// One client of a pool of four buffers, and how far its echo has come.
class one_client {
 public:
  one_client() {
    context.spawn(run());
    arriving = kernel.take().user_data;
  }
  one_client(one_client&&) = delete;

  // What the kernel says when bytes have come into a buffer.
  scripted_answer in(std::uint16_t buffer, std::string_view text, std::uint32_t flags = cqe_more) {
    std::ranges::copy(course_test::bytes_of(text), supply.bytes_of[buffer].begin());
    return {arriving, static_cast<std::int32_t>(text.size()), in_buffer(buffer) | flags};
  }
  [[nodiscard]] scripted_answer says(std::int32_t res, std::uint32_t flags = 0) const {
    return {arriving, res, flags};
  }

  // How many buffers are not with the kernel.
  [[nodiscard]] std::size_t lent() const { return pool_.lent(); }
  [[nodiscard]] bool has_ended() const noexcept { return ended_; }
  void stop() { waiting_.cancel(); }

  io_context context;
  recorded_supply supply;
  manual_ring kernel{context};
  std::uint64_t arriving = 0;  // the stream's request

 private:
  task<> run() {
    co_await echo_.run(socket_number);
    ended_ = true;
  }

  uring::buffer_pool pool_{context, supply, {4, 64}};
  cancel_source waiting_{context};
  cancel_source given_up_{context};
  uring::stream_echo echo_{pool_, waiting_, given_up_};
  bool ended_ = false;
};

}  // namespace

TEST_CASE("10 an echo that is taken at once leaves the request in flight", "[10]") {
  one_client client;
  client.kernel.turn({client.in(0, "hello")});
  const ::io_uring_sqe send = client.kernel.take();
  CHECK(send.opcode == IORING_OP_SEND);
  CHECK(bytes_of(send) == "hello");
  CHECK((send.msg_flags & (MSG_DONTWAIT | MSG_NOSIGNAL)) == (MSG_DONTWAIT | MSG_NOSIGNAL));
  client.kernel.answer(send, 5);
  CHECK(client.lent() == 0);
  CHECK(client.kernel.waiting() == 0);
  client.kernel.turn({client.says(0)});
  CHECK(client.has_ended());
}

TEST_CASE("10.5 a client that does not read holds no buffer, and gets no more", "[10.5]") {
  one_client client;
  client.kernel.turn({client.in(0, "hello"), client.in(1, " and"), client.in(2, " more")});
  client.kernel.answer(client.kernel.take(), 2);  // a short send
  REQUIRE(client.kernel.waiting() == 1);
  const ::io_uring_sqe cancel = client.kernel.take();
  UNSCOPED_INFO(
      "the request is still armed: it would fill one buffer after the other for a client that "
      "does not read");
  REQUIRE(cancel.opcode == IORING_OP_ASYNC_CANCEL);
  CHECK(cancel.addr == client.arriving);
  // One comes before the request has ended.
  client.kernel.turn({client.in(3, "!"), {cancel.user_data, 0}});
  client.kernel.turn({client.says(-ECANCELED)});
  UNSCOPED_INFO(
      "buffers wait for a client that does not read, also those of the items that the stream has "
      "kept: copy their bytes");
  CHECK(client.lent() == 0);
  for (auto& [id, bytes] : client.supply.bytes_of) std::ranges::fill(bytes, std::byte{'X'});
  const ::io_uring_sqe rest = client.kernel.take();
  UNSCOPED_INFO("the rest in the order in which it came, from where the first send stopped");
  CHECK(bytes_of(rest) == "llo and more!");
  CHECK((rest.msg_flags & MSG_DONTWAIT) == 0);
  client.kernel.answer(rest, 13);
  UNSCOPED_INFO("the client reads again: arm the request again");
  REQUIRE(client.kernel.waiting() == 1);
  const ::io_uring_sqe again = client.kernel.take();
  CHECK(again.opcode == IORING_OP_RECV);
  client.kernel.answer(again, 0);
  CHECK(client.has_ended());
}

TEST_CASE("10.5 the end of a client that does not read comes after the rest of its echo",
          "[10.5]") {
  one_client client;
  client.kernel.turn({client.in(0, "one"), client.in(1, "two"), client.says(0)});
  client.kernel.answer(client.kernel.take(), -EAGAIN);
  UNSCOPED_INFO("the request has ended by itself, with EOF: nothing is to be canceled");
  REQUIRE(client.kernel.waiting() == 1);
  const ::io_uring_sqe rest = client.kernel.take();
  REQUIRE(rest.opcode == IORING_OP_SEND);
  CHECK(bytes_of(rest) == "onetwo");
  CHECK(client.lent() == 0);
  UNSCOPED_INFO("EOF was taken for a reason to drop the rest");
  REQUIRE_FALSE(client.has_ended());
  client.kernel.answer(rest, 6);
  UNSCOPED_INFO("EOF stood behind the bytes, and was lost: the next recv would wait forever");
  CHECK(client.has_ended());
  CHECK(client.kernel.waiting() == 0);
}

TEST_CASE("10.5 a client that is lost while its rest is sent ends, and leaves nothing", "[10.5]") {
  one_client client;
  client.kernel.turn({client.in(0, "one"), client.in(1, "two"), client.says(-ECONNRESET)});
  client.kernel.answer(client.kernel.take(), 1);
  client.kernel.answer(client.kernel.take(), -EPIPE);
  CHECK(client.has_ended());
  CHECK(client.lent() == 0);
}

TEST_CASE("10.5 a client that is lost while it does not read gets no further request", "[10.5]") {
  one_client client;
  client.kernel.turn({client.in(0, "hello")});
  client.kernel.answer(client.kernel.take(), 2);
  const ::io_uring_sqe cancel = client.kernel.take();
  client.kernel.turn({{cancel.user_data, 0}, client.says(-ECANCELED)});
  client.kernel.answer(client.kernel.take(), -EPIPE);
  UNSCOPED_INFO("the client is lost (send_rest() was false), and its echo goes on: co_return");
  REQUIRE(client.has_ended());
  CHECK(client.kernel.waiting() == 0);
}

TEST_CASE("10 a client whose bytes found no buffer stands in line, and is armed after that",
          "[10]") {
  one_client client;
  client.kernel.turn({client.in(0, "one"), client.in(1, "two"), client.says(-ENOBUFS)});
  client.kernel.answer(client.kernel.take(), 3);
  client.kernel.answer(client.kernel.take(), 3);
  // All buffers came home meanwhile: there is no return to wait for.
  REQUIRE(client.kernel.waiting() == 1);
  const ::io_uring_sqe again = client.kernel.take();
  CHECK(again.opcode == IORING_OP_RECV);
  CHECK((again.ioprio & IORING_RECV_MULTISHOT) != 0);
  client.kernel.answer(again, 0);
  CHECK(client.has_ended());
}

TEST_CASE("10 if the request goes on although no buffer is left, nobody receives beside it",
          "[10]") {
  one_client client;
  client.kernel.turn({client.in(0, "one"), client.says(-ENOBUFS, cqe_more)});
  client.kernel.answer(client.kernel.take(), 3);
  UNSCOPED_INFO("two requests receive from one socket: their bytes would change places");
  CHECK(client.kernel.waiting() == 0);
  client.kernel.turn({client.says(0)});
  CHECK(client.has_ended());
}

TEST_CASE("10 a stop ends the request, and bytes that have arrived are echoed", "[10]") {
  one_client client;
  client.kernel.turn({client.in(0, "one"), client.in(1, "two")});
  const ::io_uring_sqe send = client.kernel.take();
  client.stop();
  const ::io_uring_sqe cancel = client.kernel.take();
  CHECK(cancel.addr == client.arriving);
  client.kernel.turn({{cancel.user_data, 0}, client.says(-ECANCELED), {send.user_data, 3}});
  const ::io_uring_sqe second = client.kernel.take();
  CHECK(bytes_of(second) == "two");
  client.kernel.answer(second, 3);
  // And what the stream has not taken out of the socket.
  const ::io_uring_sqe there = client.kernel.take();
  CHECK(there.opcode == IORING_OP_RECV);
  UNSCOPED_INFO("during a stop nobody waits for bytes");
  CHECK((there.msg_flags & MSG_DONTWAIT) != 0);
  CHECK((there.ioprio & IORING_RECV_MULTISHOT) == 0);
  client.kernel.answer(there, -EAGAIN);
  CHECK(client.has_ended());
  CHECK(client.lent() == 0);
}
