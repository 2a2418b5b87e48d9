// SPDX-License-Identifier: MIT
// Task 09.4: an echo that the socket does not take at once. The test is the kernel.
#include <liburing.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bytes.hpp"
#include "cancel_source.hpp"
#include "io_context.hpp"
#include "manual_ring.hpp"
#include "pool_echo.hpp"
#include "recorded_supply.hpp"

using course_test::bytes_of;
using course_test::in_buffer;
using course_test::manual_ring;
using course_test::recorded_supply;
using course_test::socket_number;
using uring::buffer_id;
using uring::cancel_source;
using uring::io_context;
using uring::task;

namespace {

// One client of a pool of one buffer, and how far its echo has come.
class one_client {
 public:
  one_client() { context.spawn(run()); }
  one_client(one_client&&) = delete;

  // Bytes have come, into the only buffer.
  void receives(std::string_view text) {
    const auto bytes = course_test::bytes_of(text);
    std::ranges::copy(bytes, supply.bytes_of[0].begin());
    kernel.answer(kernel.take(), static_cast<std::int32_t>(text.size()), in_buffer(0));
  }

  // One more, on the same socket number.
  void add_another() { context.spawn(run()); }

  void leaves() { kernel.answer(kernel.take(), 0); }

  [[nodiscard]] bool has_ended() const noexcept { return ended_; }
  // The buffer is with the kernel again.
  [[nodiscard]] bool buffer_is_home() const { return supply.given == std::vector<buffer_id>{0, 0}; }

  io_context context;
  recorded_supply supply;
  manual_ring kernel{context};

 private:
  task<> run() {
    co_await echo_.run(socket_number);
    ended_ = true;
  }

  uring::buffer_pool pool_{context, supply, {1, 64}};
  cancel_source waiting_{context};
  cancel_source given_up_{context};
  uring::pool_echo echo_{pool_, waiting_, given_up_};
  bool ended_ = false;
};

}  // namespace

TEST_CASE("09 a client without a buffer asks again if all buffers came home in the same turn",
          "[09]") {
  one_client client;
  client.add_another();
  const ::io_uring_sqe first = client.kernel.take();
  const ::io_uring_sqe second = client.kernel.take();
  client.kernel.answer(first, 5, in_buffer(0));
  const ::io_uring_sqe send = client.kernel.take();
  // The kernel had no buffer for the second client, and that is read after the first one's return.
  client.kernel.turn({{send.user_data, 5}, {second.user_data, -ENOBUFS}});
  UNSCOPED_INFO("no buffer is lent, so none will be returned: a client in line would wait forever");
  REQUIRE(client.kernel.waiting() == 2);
  client.leaves();
  client.leaves();
  CHECK(client.has_ended());
}

TEST_CASE("09.4 an echo that is taken at once needs no copy and no second send", "[09.4]") {
  one_client client;
  client.receives("hello");
  const ::io_uring_sqe send = client.kernel.take();
  CHECK(send.opcode == IORING_OP_SEND);
  CHECK(bytes_of(send) == "hello");
  UNSCOPED_INFO("it is sent out of the buffer that it came into");
  CHECK(send.addr == reinterpret_cast<std::uint64_t>(client.supply.bytes_of[0].data()));
  UNSCOPED_INFO("a send that may wait would hold the buffer for as long: MSG_DONTWAIT");
  CHECK((send.msg_flags & MSG_DONTWAIT) != 0);
  UNSCOPED_INFO("without MSG_NOSIGNAL a client that has gone may end the whole server");
  CHECK((send.msg_flags & MSG_NOSIGNAL) != 0);
  UNSCOPED_INFO(
      "the kernel still reads the buffer: the lease ends when the send has completed, and not "
      "before");
  CHECK_FALSE(client.buffer_is_home());
  client.kernel.answer(send, 5);
  CHECK(client.buffer_is_home());
  const ::io_uring_sqe next = client.kernel.take();
  UNSCOPED_INFO("when all bytes were taken the next recv is due");
  CHECK(next.opcode == IORING_OP_RECV);
  client.kernel.answer(next, 0);
  CHECK(client.has_ended());
}

TEST_CASE("09.4 the rest of a short send begins where it stopped", "[09.4]") {
  one_client client;
  client.receives("hello");
  client.kernel.answer(client.kernel.take(), 2);
  UNSCOPED_INFO(
      "the buffer waits with the rest of an echo: copy the rest, and return the buffer "
      "before the wait");
  CHECK(client.buffer_is_home());
  std::ranges::fill(client.supply.bytes_of[0], std::byte{'X'});  // another client's bytes
  const ::io_uring_sqe rest = client.kernel.take();
  UNSCOPED_INFO(
      "the rest begins where the first send stopped, and is a copy: the buffer belongs to another "
      "client by now");
  CHECK(bytes_of(rest) == "llo");
  client.kernel.answer(rest, 3);
  client.leaves();
  CHECK(client.has_ended());
}

TEST_CASE("09.4 a full socket does not mean that the client is lost", "[09.4]") {
  one_client client;
  client.receives("hello");
  client.kernel.answer(client.kernel.take(), -EAGAIN);
  UNSCOPED_INFO(
      "-EAGAIN says that the socket is full, and that nothing was taken: send all, later");
  REQUIRE_FALSE(client.has_ended());
  CHECK(client.buffer_is_home());
  const ::io_uring_sqe rest = client.kernel.take();
  CHECK(bytes_of(rest) == "hello");
  UNSCOPED_INFO("this send may wait, because it holds no buffer");
  CHECK((rest.msg_flags & MSG_DONTWAIT) == 0);
  client.kernel.answer(rest, 5);
  client.leaves();
  CHECK(client.has_ended());
}

TEST_CASE("09.4 a client that is lost leaves its buffer behind", "[09.4]") {
  one_client client;
  client.receives("hello");
  client.kernel.answer(client.kernel.take(), -EPIPE);
  UNSCOPED_INFO("EPIPE, ECONNRESET: nobody will take the rest");
  CHECK(client.has_ended());
  CHECK(client.buffer_is_home());
}
