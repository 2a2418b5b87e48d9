// SPDX-License-Identifier: MIT
// Task 09.1: a ring that the kernel takes buffers from, and how they get into it.
#include <liburing.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "buffer_ring.hpp"
#include "bytes.hpp"
#include "io_context.hpp"
#include "io_request.hpp"
#include "socket_pair.hpp"
#include "task.hpp"

using course_test::socket_pair;
using course_test::text_of;
using course_test::unix_pair;
using uring::buffer_ring;
using uring::completion;
using uring::io_context;
using uring::task;

namespace {

constexpr std::uint16_t group = 3;

// A recv from the group, and its whole completion, without the code of later tasks.
struct prepare_select {
  int fd;
  void operator()(::io_uring_sqe& sqe) const {
    ::io_uring_prep_recv(&sqe, fd, nullptr, 0, 0);
    sqe.flags |= IOSQE_BUFFER_SELECT;
    sqe.buf_group = group;
  }
  static completion result(const completion& done) { return done; }
};

task<completion> select_recv(io_context& context, int fd) {
  const completion done = co_await uring::io_request{context, prepare_select{fd}};
  co_return done;
}

// What a recv says when `text` has been sent to it.
completion recv_of(io_context& context, const socket_pair& pair, std::string_view text) {
  REQUIRE(::send(pair.ours.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
          static_cast<::ssize_t>(text.size()));
  return context.run(select_recv(context, pair.theirs.get()));
}

// Of this process: all that is mapped.
std::size_t mapped_pages() {
  std::ifstream statm{"/proc/self/statm"};
  std::size_t pages = 0;
  REQUIRE(statm >> pages);
  return pages;
}

unsigned id_of(const completion& done) {
  REQUIRE((done.flags & IORING_CQE_F_BUFFER) != 0);
  return done.flags >> IORING_CQE_BUFFER_SHIFT;
}

using memory = std::vector<std::array<std::byte, 64>>;

}  // namespace

TEST_CASE("09.1 a recv finds the buffer that was given", "[09.1]") {
  io_context context;
  buffer_ring ring{context, group, 4};
  memory buffers(8);
  ring.give(5, buffers[5]);
  const socket_pair pair = unix_pair();
  const completion done = recv_of(context, pair, "hello");
  UNSCOPED_INFO("-ENOBUFS: was the ring registered for its group, and the tail moved?");
  REQUIRE(done.res == 5);
  CHECK(id_of(done) == 5);
  CHECK(text_of(std::span{buffers[5]}.first(5)) == "hello");
}

TEST_CASE("09.1 buffers are taken in the order in which they were given", "[09.1]") {
  io_context context;
  buffer_ring ring{context, group, 4};
  memory buffers(4);
  for (const std::uint16_t id : std::array<std::uint16_t, 3>{3, 1, 2}) ring.give(id, buffers[id]);
  const socket_pair pair = unix_pair();
  INFO("each give() writes the entry at the tail, and then moves the tail by one");
  std::vector<unsigned> taken;
  taken.reserve(3);
  for (int i = 0; i < 3; ++i) taken.push_back(id_of(recv_of(context, pair, "x")));
  CHECK(taken == std::vector<unsigned>{3, 1, 2});
}

TEST_CASE("09.1 a recv that finds no buffer ends with ENOBUFS and loses no byte", "[09.1]") {
  io_context context;
  buffer_ring ring{context, group, 4};
  memory buffers(4);
  const socket_pair pair = unix_pair();
  CHECK(recv_of(context, pair, "still here").res == -ENOBUFS);
  ring.give(0, buffers[0]);
  CHECK(context.run(select_recv(context, pair.theirs.get())).res == 10);
  CHECK(text_of(std::span{buffers[0]}.first(10)) == "still here");
}

TEST_CASE("09.1 a buffer is as long as it was given", "[09.1]") {
  io_context context;
  buffer_ring ring{context, group, 1};
  memory buffers(1);
  ring.give(0, std::span{buffers[0]}.first(4));
  const socket_pair pair = unix_pair();
  UNSCOPED_INFO(
      "the kernel writes as much as the entry's length says: the span's, not the array's");
  CHECK(recv_of(context, pair, "twelve bytes").res == 4);
}

TEST_CASE("09.1 the ring has the next power of two of entries", "[09.1]") {
  io_context context;
  buffer_ring ring{context, group, 5};
  CHECK(ring.entries() == 8);
  memory buffers(8);
  for (std::uint16_t id = 0; id < 8; ++id) ring.give(id, buffers[id]);
  const socket_pair pair = unix_pair();
  INFO("ring_entries is that power, not the count that was asked for; the mask is one less");
  for (unsigned id = 0; id < 8; ++id) {
    CHECK(id_of(recv_of(context, pair, "x")) == id);
  }
}

TEST_CASE("09.1 the tail wraps after 65,536 buffers, and nothing is lost", "[09.1]") {
  io_context context;
  buffer_ring ring{context, group, 2};
  memory buffers(2);
  const socket_pair pair = unix_pair();
  for (std::uint32_t round = 0; round < 66'000; ++round) {
    const auto id = static_cast<std::uint16_t>(round % 2);
    ring.give(id, buffers[id]);
    const completion done = recv_of(context, pair, "x");
    if (done.res != 1 || id_of(done) != id) {
      FAIL("round " << round << ": the recv ended with " << done.res);
    }
  }
  UNSCOPED_INFO("the tail is 16 bits wide: 66,000 buffers are 464 more than it can count");
  CHECK(ring.shared().tail == 66'000 % 65'536);
}

TEST_CASE("09.1 a group is registered once, and free again when its ring has gone", "[09.1]") {
  io_context context;
  {
    const buffer_ring first{context, group, 4};
    try {
      const buffer_ring second{context, group, 4};
      FAIL_CHECK("two rings have one group: was the result of the registration looked at?");
    } catch (const std::system_error& refused) {
      CHECK(refused.code().value() == EEXIST);
      CHECK(std::string{refused.what()}.find("io_uring_register_buf_ring") != std::string::npos);
    }
  }
  UNSCOPED_INFO("the destructor unregisters the group");
  CHECK_NOTHROW(buffer_ring{context, group, 4});
}

TEST_CASE("09.1 a ring that is refused leaves nothing behind", "[09.1]") {
  io_context context;
  buffer_ring first{context, group, 4};
  const std::size_t before = mapped_pages();
  for (int i = 0; i < 100; ++i) {
    INFO("a refused ring must not unregister the group, which belongs to the ring that has it");
    REQUIRE_THROWS_AS((buffer_ring{context, group, 4096}), std::system_error);
  }
  const std::size_t after = mapped_pages();
  UNSCOPED_INFO("the constructor has thrown and left its mapping, of 16 pages each time");
  CHECK(after < before + 800);
  memory buffers(1);
  first.give(0, buffers[0]);
  const socket_pair pair = unix_pair();
  CHECK(recv_of(context, pair, "x").res == 1);
}

TEST_CASE("09.1 two groups on one ring are told apart", "[09.1]") {
  INFO("bgid is the group that requests name, not 0");
  io_context context;
  buffer_ring other{context, group + 1, 2};
  buffer_ring ring{context, group, 2};
  memory buffers(4);
  other.give(0, buffers[0]);
  ring.give(3, buffers[3]);
  const socket_pair pair = unix_pair();
  CHECK(id_of(recv_of(context, pair, "x")) == 3);
}
