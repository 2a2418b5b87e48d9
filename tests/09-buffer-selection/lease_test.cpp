// SPDX-License-Identifier: MIT
// Task 09.2: a completion lends a buffer, and the end of the lease brings it home.
#include <liburing.h>
#include <sys/socket.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "buffer_ring.hpp"
#include "bytes.hpp"
#include "errors.hpp"
#include "io_context.hpp"
#include "manual_ring.hpp"
#include "pool_operations.hpp"
#include "recorded_supply.hpp"
#include "socket_pair.hpp"
#include "turns.hpp"
#include "when_all.hpp"

using course_test::in_buffer;
using course_test::manual_ring;
using course_test::recorded_supply;
using course_test::socket_number;
using course_test::socket_pair;
using course_test::text_of;
using course_test::unix_pair;
using uring::buffer_lease;
using uring::buffer_pool;
using uring::buffer_ring;
using uring::io_context;
using uring::received;
using uring::task;

namespace {

task<> receive(uring::io_handle io, int fd, buffer_pool& pool, received& into, int flags = 0) {
  into = co_await uring::recv_op(io, fd, pool, flags);
}

task<std::string> receive_text(io_context& context, int fd, buffer_pool& pool) {
  const received got = co_await uring::recv_op(context, fd, pool);
  co_return got.result ? text_of(got.bytes()) : "error " + std::to_string(got.result.error());
}

void say(const socket_pair& pair, std::string_view text) {
  REQUIRE(::send(pair.ours.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
          static_cast<::ssize_t>(text.size()));
}

struct real_pool {
  explicit real_pool(std::size_t count)
      : ring{context, 0, count}, pool{context, ring, {count, 64}} {}

  io_context context;
  buffer_ring ring;
  buffer_pool pool;
};

}  // namespace

TEST_CASE("09 a pool gives every buffer to the kernel at its start", "[09]") {
  io_context context;
  recorded_supply supply;
  const buffer_pool pool{context, supply, {3, 64}};
  CHECK(supply.given == std::vector<uring::buffer_id>{0, 1, 2});
  CHECK(supply.bytes_of[1].data() == supply.bytes_of[0].data() + 64);
  CHECK(pool.lent() == 0);
}

TEST_CASE("09 a pool whose supply refuses a buffer leaves nothing behind", "[09]") {
  struct refusing_supply final : uring::buffer_supply {
    [[nodiscard]] uring::buffer_group group() const noexcept override { return 0; }
    void give(uring::buffer_id id, std::span<std::byte>) override {
      if (id == 2) common::throw_error(-ENOMEM, "a supply that is full");
    }
  };
  io_context context;
  refusing_supply supply;
  UNSCOPED_INFO("with ./course test 09 --sanitize a leak of the pool's memory is named");
  CHECK_THROWS_AS((buffer_pool{context, supply, {3, 64}}), std::system_error);
}

TEST_CASE("09.2 a received buffer is lent until its lease ends", "[09.2]") {
  real_pool here{1};
  const socket_pair pair = unix_pair();
  say(pair, "hello");
  received got{uring::io_result{0}, {}};
  here.context.run(receive(here.context, pair.theirs.get(), here.pool, got));
  REQUIRE(got.result.count() == 5);
  UNSCOPED_INFO("the completion has IORING_CQE_F_BUFFER: its id is in the upper half of the flags");
  REQUIRE(got.lease);
  CHECK(text_of(got.bytes()) == "hello");
  CHECK(here.pool.lent() == 1);
  got.lease = {};
  UNSCOPED_INFO("the destructor of a lease returns its buffer");
  CHECK(here.pool.lent() == 0);
}

TEST_CASE("09.2 one buffer serves a thousand messages, one after the other", "[09.2]") {
  real_pool here{1};
  const socket_pair pair = unix_pair();
  for (int i = 0; i < 1000; ++i) {
    const std::string text = "message " + std::to_string(i);
    say(pair, text);
    REQUIRE(here.context.run(receive_text(here.context, pair.theirs.get(), here.pool)) == text);
  }
}

TEST_CASE("09.2 a completion without IORING_CQE_F_BUFFER lends nothing", "[09.2]") {
  io_context context;
  recorded_supply supply;
  buffer_pool pool{context, supply, {2, 64}};
  for (const int res : {0, -ECONNRESET, -ENOBUFS, -ECANCELED}) {
    const buffer_lease none = uring::take_buffer(pool, {.user_data = 0, .res = res, .flags = 0});
    UNSCOPED_INFO(
        "the upper half of the flags is 0 then, and that is no id: buffer 0 would get into "
        "the pool twice, and one client would read another's bytes");
    CHECK_FALSE(none);
  }
  CHECK(pool.lent() == 0);
  CHECK(supply.given.size() == 2);
}

TEST_CASE("09.2 clients that leave put no buffer into the pool a second time", "[09.2]") {
  real_pool here{2};
  for (int i = 0; i < 100; ++i) {
    socket_pair leaving = unix_pair();
    leaving.ours.reset();
    REQUIRE(here.context.run(receive_text(here.context, leaving.theirs.get(), here.pool)).empty());
  }
  const socket_pair one = unix_pair();
  const socket_pair two = unix_pair();
  say(one, "of one");
  say(two, "of two");
  received first{uring::io_result{0}, {}};
  received second{uring::io_result{0}, {}};
  here.context.run(receive(here.context, one.theirs.get(), here.pool, first));
  here.context.run(receive(here.context, two.theirs.get(), here.pool, second));
  REQUIRE(first.lease);
  REQUIRE(second.lease);
  UNSCOPED_INFO("two clients have one buffer: an EOF returned a buffer that it had not taken");
  CHECK(first.lease.id() != second.lease.id());
  CHECK(text_of(first.bytes()) == "of one");
  CHECK(text_of(second.bytes()) == "of two");
}

TEST_CASE("09.2 a canceled recv that had picked a buffer brings it home", "[09.2]") {
  io_context context;
  recorded_supply supply;
  buffer_pool pool{context, supply, {2, 64}};
  manual_ring kernel{context};
  received got{uring::io_result{0}, {}};
  context.spawn(receive(context, socket_number, pool, got));
  kernel.answer(kernel.take(), -ECANCELED, in_buffer(1));
  UNSCOPED_INFO("IORING_CQE_F_BUFFER counts whatever the result is, or the buffer is lost forever");
  REQUIRE(got.lease);
  got.lease = {};
  CHECK(pool.lent() == 0);
  CHECK(supply.given == std::vector<uring::buffer_id>{0, 1, 1});
}

TEST_CASE("09.2 an id may use all of its 16 bits", "[09.2]") {
  io_context context;
  recorded_supply supply;
  buffer_pool pool{context, supply, {32768, 1}};
  const buffer_lease lease =
      uring::take_buffer(pool, {.user_data = 0, .res = 1, .flags = in_buffer(32767)});
  REQUIRE(lease);
  UNSCOPED_INFO("the id is the part of the flags above IORING_CQE_BUFFER_SHIFT: 16 bits");
  CHECK(lease.id() == 32767);
  CHECK(lease.bytes().data() == supply.bytes_of[32767].data());
}

TEST_CASE("09.2 a lease that is moved from returns nothing", "[09.2]") {
  io_context context;
  recorded_supply supply;
  buffer_pool pool{context, supply, {1, 64}};
  {
    buffer_lease first =
        uring::take_buffer(pool, {.user_data = 0, .res = 1, .flags = in_buffer(0)});
    buffer_lease second = std::move(first);
    CHECK(second);
    second = buffer_lease{};
    CHECK(pool.lent() == 0);
  }
  CHECK(supply.given == std::vector<uring::buffer_id>{0, 0});
}

TEST_CASE("09.2 the request names the group and brings no buffer of its own", "[09.2]") {
  io_context context;
  recorded_supply supply{7};
  buffer_pool pool{context, supply, {1, 64}};
  manual_ring kernel{context};
  received got{uring::io_result{0}, {}};
  context.spawn(receive(context, socket_number, pool, got));
  const ::io_uring_sqe sqe = kernel.take();
  CHECK(sqe.opcode == IORING_OP_RECV);
  CHECK(sqe.fd == socket_number);
  UNSCOPED_INFO("without IOSQE_BUFFER_SELECT in its flags it is an ordinary recv, of no bytes");
  CHECK((sqe.flags & IOSQE_BUFFER_SELECT) != 0);
  UNSCOPED_INFO("buf_group is the pool's, and not 0");
  CHECK(sqe.buf_group == 7);
  UNSCOPED_INFO("no address, and length 0: as much as the buffer holds");
  CHECK((sqe.addr == 0 && sqe.len == 0));
  UNSCOPED_INFO("the kernel waits for bytes first, and then takes a buffer");
  CHECK((sqe.ioprio & IORING_RECVSEND_POLL_FIRST) != 0);
  kernel.answer(sqe, 0);

  context.spawn(receive(context, socket_number, pool, got, MSG_DONTWAIT));
  const ::io_uring_sqe at_once = kernel.take();
  UNSCOPED_INFO("with MSG_DONTWAIT it would end with -EAGAIN without having looked");
  CHECK((at_once.ioprio & IORING_RECVSEND_POLL_FIRST) == 0);
  CHECK(at_once.msg_flags == MSG_DONTWAIT);
  kernel.answer(at_once, 0);
}

TEST_CASE("09.2 a recv that waits for bytes neither takes a buffer nor asks for one", "[09.2]") {
  real_pool here{1};
  const socket_pair talking = unix_pair();
  const socket_pair silent = unix_pair();
  say(talking, "hello");
  received lent{uring::io_result{0}, {}};
  here.context.run(receive(here.context, talking.theirs.get(), here.pool, lent));
  REQUIRE(lent.lease);
  // The only buffer is lent. The next recv waits all the same, until there is something to receive.
  uring::cancel_source source{here.context};
  received got{uring::io_result{0}, {}};
  here.context.run(uring::when_all(source, receive(source, silent.theirs.get(), here.pool, got),
                                   course_test::cancel_after(here.context, 5, source)));
  UNSCOPED_INFO("ENOBUFS (105) before a byte has come: IORING_RECVSEND_POLL_FIRST is missing");
  CHECK(got.result.error() == ECANCELED);
}
