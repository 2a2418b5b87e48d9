// SPDX-License-Identifier: MIT
// Task 10.1: one request that receives all bytes of a client, each time in a buffer of the pool.
#include <liburing.h>
#include <sys/socket.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "buffer_ring.hpp"
#include "bytes.hpp"
#include "heard_items.hpp"
#include "io_context.hpp"
#include "multishot_operations.hpp"
#include "pool_operations.hpp"
#include "recorded_supply.hpp"
#include "socket_pair.hpp"
#include "turns.hpp"

using course_test::heard_items;
using course_test::socket_pair;
using course_test::text_of;
using course_test::unix_pair;
using uring::buffer_pool;
using uring::io_context;
using uring::prepare_recv_stream;
using uring::received;
using uring::task;

namespace {

void say(const socket_pair& pair, std::string_view text) {
  REQUIRE(::send(pair.ours.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
          static_cast<::ssize_t>(text.size()));
}

// Takes a buffer, and keeps it.
task<> hold(io_context& context, int fd, buffer_pool& pool, received& into) {
  into = co_await uring::recv_op(context, fd, pool);
}

// Buffers of eight bytes.
struct real_pool {
  explicit real_pool(std::size_t count)
      : ring{context, 0, count}, pool{context, ring, {count, 8}} {}

  io_context context;
  uring::buffer_ring ring;
  buffer_pool pool;
};

}  // namespace

TEST_CASE("10.1 one request asks for all bytes, each time in a buffer of the pool", "[10.1]") {
  io_context context;
  course_test::recorded_supply supply{7};
  buffer_pool pool{context, supply, {1, 64}};
  ::io_uring_sqe sqe{};
  prepare_recv_stream{42, &pool}(sqe);
  CHECK(sqe.opcode == IORING_OP_RECV);
  CHECK(sqe.fd == 42);
  UNSCOPED_INFO(
      "a recv that ends with the first bytes. io_uring_prep_recv_multishot() sets a flag in "
      "ioprio: the code after it must keep that flag, with |=");
  CHECK((sqe.ioprio & IORING_RECV_MULTISHOT) != 0);
  UNSCOPED_INFO("a silent client would ask for a buffer, and end with -ENOBUFS when there is none");
  CHECK((sqe.ioprio & IORING_RECVSEND_POLL_FIRST) != 0);
  UNSCOPED_INFO("without IOSQE_BUFFER_SELECT the kernel says -EINVAL: where should the bytes go?");
  CHECK((sqe.flags & IOSQE_BUFFER_SELECT) != 0);
  UNSCOPED_INFO("buf_group is the pool's, and not 0");
  CHECK(sqe.buf_group == 7);
  UNSCOPED_INFO("no address, and length 0: the buffer has both");
  CHECK((sqe.addr == 0 && sqe.len == 0));
  UNSCOPED_INFO("MSG_WAITALL is refused, and with MSG_DONTWAIT it ends when nothing is there");
  CHECK(sqe.msg_flags == 0);
}

TEST_CASE("10.1 one request brings all bytes of a client, and its end", "[10.1]") {
  real_pool here{8};
  socket_pair pair = unix_pair();
  heard_items all{prepare_recv_stream{pair.theirs.get(), &here.pool}};
  REQUIRE(here.context.start(all, all.prepare));
  for (const char* text : {"one", "two", "three"}) {
    say(pair, text);
    here.context.turn();
    REQUIRE(text_of(all.items.back().bytes()) == text);
    UNSCOPED_INFO("the request has ended, and the client has not");
    REQUIRE(all.is_in_flight);
  }
  all.items.clear();
  say(pair, "more than eight bytes");
  pair.ours.reset();
  while (here.context.in_flight() > 0) here.context.turn();
  REQUIRE(all.items.size() == 4);
  CHECK(text_of(all.items[0].bytes()) == "more tha");
  CHECK(text_of(all.items[1].bytes()) == "n eight ");
  CHECK(text_of(all.items[2].bytes()) == "bytes");
  UNSCOPED_INFO("EOF: a count of 0, and no buffer");
  CHECK((all.items[3].result && all.items[3].result.count() == 0 && !all.items[3].lease));
  all.items.clear();
  CHECK(here.pool.lent() == 0);
}

TEST_CASE("10.1 a silent client needs no buffer, even if all are lent", "[10.1]") {
  real_pool here{1};
  const socket_pair talking = unix_pair();
  const socket_pair silent = unix_pair();
  say(talking, "hello");
  received lent{uring::io_result{0}, {}};
  here.context.run(hold(here.context, talking.theirs.get(), here.pool, lent));
  REQUIRE(lent.lease);
  heard_items all{prepare_recv_stream{silent.theirs.get(), &here.pool}};
  REQUIRE(here.context.start(all, all.prepare));
  here.context.run(course_test::pass_turns(here.context, 5));
  UNSCOPED_INFO(
      "it has ended before a byte has come: with -ENOBUFS (105) if IORING_RECVSEND_POLL_FIRST is "
      "missing, with -EAGAIN (11) if it says MSG_DONTWAIT");
  if (!all.items.empty()) UNSCOPED_INFO("it was " << all.items[0].result.error());
  CHECK(all.items.empty());
  say(silent, "x");
  while (here.context.in_flight() > 0) here.context.turn();
  REQUIRE(all.items.size() == 1);
  UNSCOPED_INFO("bytes have come, and no buffer is left: that ends the request");
  CHECK(all.items[0].result.error() == ENOBUFS);
}
