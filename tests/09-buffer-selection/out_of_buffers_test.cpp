// SPDX-License-Identifier: MIT
// Task 09.3: no buffer is left, which is normal. The client that comes first gets the next one.
#include <sys/socket.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "buffer_ring.hpp"
#include "bytes.hpp"
#include "cancel_source.hpp"
#include "io_context.hpp"
#include "manual_ring.hpp"
#include "pool_operations.hpp"
#include "recorded_supply.hpp"
#include "scope.hpp"
#include "socket_pair.hpp"
#include "turns.hpp"
#include "when_all.hpp"

using course_test::in_buffer;
using course_test::pass_turns;
using course_test::recorded_supply;
using course_test::socket_pair;
using course_test::text_of;
using course_test::unix_pair;
using uring::buffer_id;
using uring::buffer_lease;
using uring::buffer_pool;
using uring::cancel_source;
using uring::io_context;
using uring::received;
using uring::task;

namespace {

buffer_lease lend(buffer_pool& pool, std::uint16_t id) {
  return uring::take_buffer(pool, {.user_data = 0, .res = 1, .flags = in_buffer(id)});
}

// Notes which client got which buffer, and holds it for a few turns.
struct note {
  char who;
  int id;  // -1: none
  friend bool operator==(const note&, const note&) = default;
};

task<> wait_in_line(io_context& context, buffer_pool& pool, cancel_source& source, char who,
                    std::vector<note>& notes) {
  const buffer_lease lease = co_await pool.next_return(source);
  notes.push_back({who, lease ? lease.id() : -1});
  co_await pass_turns(context, 2);
}

task<> look(io_context& context, buffer_pool& pool, std::size_t& lent) {
  co_await pass_turns(context, 2);
  lent = pool.lent();
}

// How a client's wait ended.
struct ended {
  std::string text;
  int error = 0;
  bool has_lease = false;
};

task<> receive(cancel_source& source, int fd, buffer_pool& pool, ended& into) {
  const received got = co_await uring::recv_into_next_return(source, fd, pool);
  into = {text_of(got.bytes()), got.result.error(), static_cast<bool>(got.lease)};
}

task<> return_after(io_context& context, int turns, buffer_lease lease) {
  co_await pass_turns(context, turns);
  lease = {};
}

}  // namespace

TEST_CASE("09.3 a return goes to the first in line, and not to the kernel", "[09.3]") {
  io_context context;
  recorded_supply supply;
  buffer_pool pool{context, supply, {1, 64}};
  cancel_source source{context};
  std::vector<note> notes;
  INFO("first come, first served: each return goes to the coroutine that waits longest");
  context.run(uring::when_all(source, wait_in_line(context, pool, source, 'a', notes),
                              wait_in_line(context, pool, source, 'b', notes),
                              wait_in_line(context, pool, source, 'c', notes),
                              return_after(context, 1, lend(pool, 0))));
  CHECK(notes == std::vector<note>{{'a', 0}, {'b', 0}, {'c', 0}});
  UNSCOPED_INFO(
      "while somebody waits a returned buffer is not the kernel's: any other recv could "
      "take it there, and those in line would starve");
  CHECK(supply.given == std::vector<buffer_id>{0, 0});
  CHECK(pool.lent() == 0);
}

TEST_CASE("09 with nobody in line a return goes to the kernel, with its own bytes", "[09]") {
  io_context context;
  recorded_supply supply;
  buffer_pool pool{context, supply, {3, 64}};
  const auto before = supply.bytes_of[2].data();
  {
    const buffer_lease lease = lend(pool, 2);
  }
  CHECK(supply.given == std::vector<buffer_id>{0, 1, 2, 2});
  CHECK(supply.bytes_of[2].data() == before);
  CHECK(supply.bytes_of[2].size() == 64);
  UNSCOPED_INFO("a buffer that is home is not lent any more: count it");
  CHECK(pool.lent() == 0);
}

TEST_CASE("09.3 a buffer that goes from hand to hand stays lent", "[09.3]") {
  io_context context;
  recorded_supply supply;
  buffer_pool pool{context, supply, {1, 64}};
  cancel_source source{context};
  std::vector<note> notes;
  std::size_t lent_meanwhile = 0;
  context.run(uring::when_all(source, wait_in_line(context, pool, source, 'a', notes),
                              return_after(context, 1, lend(pool, 0)),
                              look(context, pool, lent_meanwhile)));
  UNSCOPED_INFO("the buffer went from one lease to the next: it was never home");
  CHECK(lent_meanwhile == 1);
  CHECK(pool.lent() == 0);
}

TEST_CASE("09.3 a wait that is canceled leaves the line", "[09.3]") {
  io_context context;
  recorded_supply supply;
  buffer_pool pool{context, supply, {1, 64}};
  cancel_source gone{context};
  cancel_source stays{context};
  std::vector<note> notes;
  context.run(uring::when_all(stays, wait_in_line(context, pool, gone, 'a', notes),
                              wait_in_line(context, pool, stays, 'b', notes),
                              course_test::cancel_after(context, 1, gone),
                              return_after(context, 4, lend(pool, 0))));
  CHECK(notes == std::vector<note>{{'a', -1}, {'b', 0}});
  CHECK(pool.lent() == 0);
}

TEST_CASE("09.3 a client whose bytes found no buffer is served by the next return", "[09.3]") {
  io_context context;
  recorded_supply supply;
  buffer_pool pool{context, supply, {1, 64}};
  cancel_source source{context};
  const socket_pair pair = unix_pair();
  REQUIRE(::send(pair.ours.get(), "patience", 8, MSG_NOSIGNAL) == 8);
  ended seen;
  context.run(uring::when_all(source, receive(source, pair.theirs.get(), pool, seen),
                              return_after(context, 1, lend(pool, 0))));
  UNSCOPED_INFO("the bytes go into the buffer that came home, and the result keeps its lease");
  CHECK(seen.text == "patience");
  CHECK(pool.lent() == 0);
}

TEST_CASE("09.3 a buffer is not held for a client that has nothing to say", "[09.3]") {
  io_context context;
  recorded_supply supply;
  buffer_pool pool{context, supply, {1, 64}};
  cancel_source source{context};
  const socket_pair silent = unix_pair();
  ended seen;
  context.run(uring::when_all(source, receive(source, silent.theirs.get(), pool, seen),
                              return_after(context, 1, lend(pool, 0)),
                              course_test::cancel_after(context, 20, source)));
  UNSCOPED_INFO(
      "ECANCELED (125): the recv waited with the only buffer in its hand; MSG_DONTWAIT "
      "makes it say EAGAIN (11)");
  CHECK(seen.error == EAGAIN);
  CHECK(pool.lent() == 0);
}

TEST_CASE("09.3 a canceled client gets no buffer and says so", "[09.3]") {
  io_context context;
  recorded_supply supply;
  buffer_pool pool{context, supply, {1, 64}};
  cancel_source source{context};
  const socket_pair pair = unix_pair();
  ended seen;
  context.run(uring::when_all(source, receive(source, pair.theirs.get(), pool, seen),
                              course_test::cancel_after(context, 1, source),
                              return_after(context, 4, lend(pool, 0))));
  CHECK(seen.error == ECANCELED);
  CHECK_FALSE(seen.has_lease);
  CHECK(pool.lent() == 0);
}
