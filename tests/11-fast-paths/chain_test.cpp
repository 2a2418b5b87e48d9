// SPDX-License-Identifier: MIT
// Task 11.2: linked requests, of which none is submitted before all of them are there.
#include <fcntl.h>
#include <liburing.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "bytes.hpp"
#include "cancel_source.hpp"
#include "counted.hpp"
#include "file_operations.hpp"
#include "io_context.hpp"
#include "linked.hpp"
#include "manual_ring.hpp"
#include "operations.hpp"
#include "pipe_ends.hpp"
#include "ring_modes.hpp"
#include "silent_socket.hpp"
#include "task.hpp"
#include "turns.hpp"
#include "when_all.hpp"

using namespace std::chrono_literals;
using course_test::cancel_after;
using course_test::counted;
using course_test::make_pipe;
using course_test::manual_ring;
using course_test::pass_turns;
using course_test::pipe_ends;
using course_test::silent_socket;
using uring::cancel_source;
using uring::chain_answers;
using uring::io_context;
using uring::io_handle;
using uring::io_result;
using uring::task;

namespace {

constexpr std::uint8_t link_flags = IOSQE_IO_LINK | IOSQE_IO_HARDLINK;

int res_of(const io_result& ended) {
  return ended ? ended.fd() : -ended.error();
}

using three = std::array<int, 3>;

task<> link_three_nops(io_handle io, three& into, bool& has_ended, counted) {
  const auto ended =
      co_await uring::linked(uring::nop_op(io), uring::nop_op(io), uring::nop_op(io));
  into = {res_of(std::get<0>(ended)), res_of(std::get<1>(ended)), res_of(std::get<2>(ended))};
  has_ended = true;
}

// The step of a chain of linked_steps: as many NOPs as the test likes.
struct nop_step {
  void operator()(::io_uring_sqe& sqe) const { ::io_uring_prep_nop(&sqe); }
};

struct seen {
  bool has_ended = false;
  std::size_t answered = 0;
  int res = 1;
};

task<> link_nops(io_handle io, std::size_t count, chain_answers answers, seen& into) {
  uring::linked_steps chain{io, std::vector<nop_step>(count), answers};
  co_await chain;
  into = {true, chain.answered(), res_of(chain.result(chain.answered()))};
}

// Reads a byte from one pipe and writes it to another, by two linked requests.
task<std::array<int, 2>> pass_on(io_handle io, int from, int to, std::span<std::byte> buffer) {
  const auto ended =
      co_await uring::linked(uring::read_op(io, from, buffer), uring::write_op(io, to, buffer));
  co_return std::array{res_of(std::get<0>(ended)), res_of(std::get<1>(ended))};
}

bool is_empty(const common::unique_fd& nonblocking_pipe) {
  char byte = 0;
  return ::read(nonblocking_pipe.get(), &byte, 1) == -1 && errno == EAGAIN;
}

}  // namespace

TEST_CASE("11.2 every request but the last has the flag that links it to the next", "[11.2]") {
  io_context context;
  manual_ring kernel{context};
  three ended{};
  bool has_ended = false;
  context.spawn(link_three_nops(context, ended, has_ended, {}));
  REQUIRE(kernel.waiting() == 3);
  const ::io_uring_sqe first = kernel.take();
  const ::io_uring_sqe second = kernel.take();
  const ::io_uring_sqe last = kernel.take();
  for (const ::io_uring_sqe& each : {first, second}) {
    UNSCOPED_INFO("without the flag the requests run at the same time");
    CHECK((each.flags & link_flags) == IOSQE_IO_LINK);
  }
  UNSCOPED_INFO(
      "the last request is linked to the next one that other code submits, which then waits for "
      "it");
  CHECK((last.flags & link_flags) == 0);
  kernel.turn({{first.user_data, 0}, {second.user_data, 0}, {last.user_data, 0}});
  CHECK(has_ended);
}

TEST_CASE("11.2 a link is added to the flags that a request has", "[11.2]") {
  struct check {
    static task<> read_slots(io_context& context, std::span<std::byte> buffer) {
      const auto ended = co_await uring::linked(
          uring::with_flags(uring::read_op(context, 3, buffer, 0), IOSQE_FIXED_FILE),
          uring::with_flags(uring::write_op(context, 4, buffer, 0), IOSQE_FIXED_FILE));
      (void)ended;
    }
  };
  io_context context;
  manual_ring kernel{context};
  std::array<std::byte, 8> buffer{};
  context.spawn(check::read_slots(context, buffer));
  const ::io_uring_sqe first = kernel.take();
  const ::io_uring_sqe last = kernel.take();
  UNSCOPED_INFO("with = instead of |= slot 3 becomes descriptor 3, which is another file");
  CHECK(first.flags == (IOSQE_FIXED_FILE | IOSQE_IO_LINK));
  CHECK(last.flags == IOSQE_FIXED_FILE);
  kernel.turn({{first.user_data, 8}, {last.user_data, 8}});
}

TEST_CASE("11.2 the frame goes on when the last completion has come, in any order", "[11.2]") {
  std::array<std::size_t, 3> order{0, 1, 2};
  do {
    io_context context;
    manual_ring kernel{context};
    three ended{};
    bool has_ended = false;
    context.spawn(link_three_nops(context, ended, has_ended, {}));
    REQUIRE(kernel.waiting() == 3);
    const std::array<::io_uring_sqe, 3> requests{kernel.take(), kernel.take(), kernel.take()};
    const three answers{7, -EIO, -ECANCELED};
    for (const std::size_t each : order) {
      CHECK_FALSE(has_ended);
      kernel.answer(requests[each], answers[each]);
    }
    CHECK(has_ended);
    CHECK(ended == answers);
    CHECK(context.in_flight() == 0);
    CHECK(counted::live() == 0);
  } while (std::ranges::next_permutation(order).found);
}

TEST_CASE("11.2 a full queue does not cut a chain", "[11.2]") {
  struct check {
    // How often bytes came out before they had gone in. So many NOPs stand in the queue before the
    // chain that it has 0, 1, 2, 3 places left.
    static task<int> in_a_crowd(io_context& context) {
      int too_early = 0;
      for (int round = 0; round < 40; ++round) {
        const pipe_ends in = make_pipe();
        const pipe_ends out = make_pipe(O_CLOEXEC | O_NONBLOCK);
        for (int i = 0; i < round % 4; ++i) context.spawn(pass_turns(context, 1));
        context.spawn(look_then_write(context, in.write.get(), out.read, too_early));
        std::array<std::byte, 1> byte{};
        const auto ended = co_await pass_on(context, in.read.get(), out.write.get(), byte);
        if (ended != std::array{1, 1}) co_return -1;
      }
      co_return too_early;
    }
    static task<> look_then_write(io_context& context, int to, const common::unique_fd& out,
                                  int& too_early) {
      co_await pass_turns(context, 3);
      if (!is_empty(out)) ++too_early;
      REQUIRE(::write(to, "x", 1) == 1);
    }
  };
  for (const unsigned entries : {2U, 4U}) {
    for (const uring::ring_mode mode : {uring::ring_mode::plain, uring::ring_mode::defer}) {
      io_context context{{.mode = mode, .sq_entries = entries, .cq_entries = 2 * entries}};
      const int too_early = context.run(check::in_a_crowd(context));  // its checks clear the INFO
      UNSCOPED_INFO(
          "the second request has run before the first: when the first was put into a full queue, "
          "the queue was submitted, and the chain was cut: reserve() room for all of it first");
      CHECK(too_early == 0);
    }
  }
}

TEST_CASE("11.2 a chain may fill half of the queue", "[11.2]") {
  for (const uring::ring_options& options : course_test::all_rings) {
    io_context context{options};
    const std::size_t longest = uring::chain_requests_max(context);
    for (int round = 0; round < 10; ++round) {
      seen chain;
      context.run(link_nops(context, longest, chain_answers::each, chain));
      REQUIRE(chain.has_ended);
      REQUIRE(chain.answered == longest - 1);
    }
  }
}

TEST_CASE("11.2 each request begins when the one before it has succeeded", "[11.2]") {
  for (const uring::ring_options& options : course_test::all_rings) {
    io_context context{options};
    const pipe_ends in = make_pipe();
    const pipe_ends out = make_pipe(O_CLOEXEC | O_NONBLOCK);
    std::array<std::byte, 5> buffer{};
    REQUIRE(::write(in.write.get(), "hello", 5) == 5);
    const auto ended = context.run(pass_on(context, in.read.get(), out.write.get(), buffer));
    CHECK(ended == std::array{5, 5});
    std::array<char, 8> got{};
    REQUIRE(::read(out.read.get(), got.data(), got.size()) == 5);
    UNSCOPED_INFO("the write took the bytes that were in the buffer before the read had filled it");
    CHECK(std::string{got.data(), 5} == "hello");
  }
}

TEST_CASE("11.2 a request that fails or is short breaks the chain, and the rest does nothing",
          "[11.2]") {
  io_context context;
  const pipe_ends in = make_pipe();
  const pipe_ends out = make_pipe(O_CLOEXEC | O_NONBLOCK);
  std::array<std::byte, 5> buffer{};
  CHECK(context.run(pass_on(context, -1, out.write.get(), buffer)) ==
        std::array{-EBADF, -ECANCELED});
  REQUIRE(::write(in.write.get(), "abc", 3) == 3);
  CHECK(context.run(pass_on(context, in.read.get(), out.write.get(), buffer)) ==
        std::array{3, -ECANCELED});
  CHECK(is_empty(out.read));
}

TEST_CASE("11.2 a chain with hard links goes on in any case", "[11.2]") {
  struct check {
    static task<three> hard(io_context& context, int from, int to, std::span<std::byte> buffer) {
      const auto ended = co_await uring::hard_linked(uring::read_op(context, -1, buffer),
                                                     uring::read_op(context, from, buffer),
                                                     uring::write_op(context, to, buffer));
      co_return three{res_of(std::get<0>(ended)), res_of(std::get<1>(ended)),
                      res_of(std::get<2>(ended))};
    }
  };
  io_context context;
  const pipe_ends in = make_pipe();
  const pipe_ends out = make_pipe(O_CLOEXEC | O_NONBLOCK);
  std::array<std::byte, 5> buffer{};
  REQUIRE(::write(in.write.get(), "abc", 3) == 3);
  CHECK(context.run(check::hard(context, in.read.get(), out.write.get(), buffer)) ==
        three{-EBADF, 3, 5});
}

TEST_CASE("11.2 nothing is started for a source that was canceled before", "[11.2]") {
  io_context context;
  manual_ring kernel{context};
  cancel_source source{context};
  source.cancel();
  three ended{};
  bool has_ended = false;
  context.spawn(link_three_nops(source, ended, has_ended, {}));
  UNSCOPED_INFO(
      "io.start() says false, and then await_suspend() must: nobody will resume the frame");
  REQUIRE(has_ended);
  CHECK(ended == three{-ECANCELED, -ECANCELED, -ECANCELED});
  CHECK(kernel.waiting() == 0);
}

TEST_CASE("11.2 a cancel ends a chain that has begun", "[11.2]") {
  for (const uring::ring_options& options : course_test::all_rings) {
    io_context context{options};
    const silent_socket silent;
    cancel_source source{context};
    cancel_source unused{context};
    std::array<std::byte, 8> buffer{};
    const pipe_ends out = make_pipe(O_CLOEXEC | O_NONBLOCK);
    const auto ended =
        context.run(uring::when_all(unused, pass_on(source, silent.fd(), out.write.get(), buffer),
                                    cancel_after(context, 2, source)));
    CHECK(std::get<0>(ended) == std::array{-ECANCELED, -ECANCELED});
    CHECK(is_empty(out.read));
    CHECK(context.in_flight() == 0);
  }
}

TEST_CASE("11.2 a stop ends a chain that has begun", "[11.2]") {
  struct check {
    static task<> chain(io_context& context, int from, int to, std::array<int, 2>& into) {
      std::array<std::byte, 8> buffer{};
      into = co_await pass_on(context, from, to, buffer);
    }
    static task<> stop(io_context& context) {
      co_await pass_turns(context, 2);
      context.stop();
    }
  };
  io_context context;
  const silent_socket silent;
  const pipe_ends out = make_pipe();
  std::array<int, 2> ended{};
  context.spawn(check::chain(context, silent.fd(), out.write.get(), ended));
  context.spawn(check::stop(context));
  context.run();
  CHECK(ended == std::array{-ECANCELED, -ECANCELED});
}

// ---- chains that complete once ----

TEST_CASE("11.2 a chain with one answer is in flight once, until its last request", "[11.2]") {
  io_context context;
  manual_ring kernel{context};
  seen chain;
  context.spawn(link_nops(context, 3, chain_answers::one, chain));
  REQUIRE(kernel.waiting() == 3);
  CHECK(context.in_flight() == 1);
  const ::io_uring_sqe first = kernel.take();
  const ::io_uring_sqe second = kernel.take();
  const ::io_uring_sqe last = kernel.take();
  constexpr std::uint8_t both = IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
  CHECK((first.flags & both) == both);
  CHECK((second.flags & both) == both);
  UNSCOPED_INFO("nothing would report the end of the chain: the last request has to complete");
  CHECK((last.flags & both) == 0);
  kernel.answer(last, 5);
  REQUIRE(chain.has_ended);
  CHECK(chain.answered == 2);
  CHECK(chain.res == 5);
  CHECK(context.in_flight() == 0);
}

TEST_CASE("11.2 a chain with one answer that breaks ends with the request that broke it",
          "[11.2]") {
  io_context context;
  manual_ring kernel{context};
  cancel_source source{context};
  seen chain;
  context.spawn(link_nops(source, 3, chain_answers::one, chain));
  REQUIRE(kernel.waiting() == 3);
  (void)kernel.take();
  kernel.answer(kernel.take(), -EIO);
  REQUIRE(chain.has_ended);
  CHECK(chain.answered == 1);
  CHECK(chain.res == -EIO);
  CHECK(context.in_flight() == 0);
  source.cancel();
  UNSCOPED_INFO("requests that are over are still on the source's list");
  CHECK(kernel.waiting() == 1);  // the last of the three: nobody is asked to end any more
}

TEST_CASE("11.2 the kernel answers once for a chain, however it ends", "[11.2]") {
  struct transfer {
    int from;
    int to;
    std::span<std::byte> buffer;
    bool is_read;
    void operator()(::io_uring_sqe& sqe) const {
      const auto bytes = static_cast<unsigned>(buffer.size());
      is_read ? ::io_uring_prep_read(&sqe, from, buffer.data(), bytes, uring::current_position)
              : ::io_uring_prep_write(&sqe, to, buffer.data(), bytes, uring::current_position);
    }
  };
  struct check {
    static task<std::array<int, 2>> chain(io_context& context, std::vector<transfer> steps) {
      uring::linked_steps chain{context, std::move(steps), chain_answers::one};
      co_await chain;
      co_return std::array{static_cast<int>(chain.answered()),
                           res_of(chain.result(chain.answered()))};
    }
  };
  for (uring::ring_options options : course_test::all_rings) {
    options.sq_entries = std::max(options.sq_entries, 8U);  // a chain of four takes half of them
    io_context context{options};
    const pipe_ends in = make_pipe();
    const pipe_ends out = make_pipe();
    std::array<std::byte, 4> buffer{};
    const transfer read{in.read.get(), out.write.get(), buffer, true};
    const transfer write{in.read.get(), out.write.get(), buffer, false};
    const std::vector<transfer> twice{read, write, read, write};
    REQUIRE(::write(in.write.get(), "abcdefgh", 8) == 8);
    CHECK(context.run(check::chain(context, twice)) == std::array{3, 4});
    REQUIRE(::write(in.write.get(), "abcdef", 6) == 6);
    CHECK(context.run(check::chain(context, twice)) == std::array{2, 2});
    transfer broken = write;
    broken.to = -1;
    REQUIRE(::write(in.write.get(), "abcd", 4) == 4);
    CHECK(context.run(check::chain(context, {read, broken, read, write})) == std::array{1, -EBADF});
    CHECK(context.run(check::chain(context, {broken, read, read, write})) == std::array{0, -EBADF});
    // A completion that nobody waits for would be found here.
    CHECK(context.in_flight() == 0);
    context.run(pass_turns(context, 3));
  }
}
