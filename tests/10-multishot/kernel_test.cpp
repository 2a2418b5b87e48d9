// SPDX-License-Identifier: MIT
// What the real kernel does to a stream: a completion queue that is too small, a consumer that is
// too slow, a cancel at a random moment. Nothing is lost, and nothing comes twice.
#include <liburing.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "buffer_ring.hpp"
#include "bytes.hpp"
#include "cancel_source.hpp"
#include "finally.hpp"
#include "io_context.hpp"
#include "multishot_operations.hpp"
#include "next_within.hpp"
#include "pool_operations.hpp"
#include "ring_modes.hpp"
#include "socket_pair.hpp"
#include "turns.hpp"

using namespace std::chrono_literals;
using course_test::compare_bytes;
using course_test::identical;
using course_test::socket_pair;
using course_test::text_of;
using uring::buffer_pool;
using uring::cancel_source;
using uring::io_context;
using uring::received;
using uring::recv_stream;
using uring::task;

namespace {

constexpr std::size_t bytes = 200'000;

struct reading {
  std::string text;
  std::size_t queued_most = 0;
  int errors = 0;
  int late = 0;
};

struct few_buffers {
  explicit few_buffers(const uring::ring_options& options, std::size_t count)
      : context{options}, ring{context, 0, count}, pool{context, ring, {count, 64}} {}

  io_context context;
  uring::buffer_ring ring;
  buffer_pool pool;
  cancel_source source{context};
};

// Sends all of it and hangs up.
void produce(int fd, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ::ssize_t sent = ::send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (sent < 0) return;
    at += static_cast<std::size_t>(sent);
  }
  ::shutdown(fd, SHUT_WR);
}

// In pieces, with pauses that are about as long as the consumer's patience.
void produce_in_pieces(int fd, const std::string& text) {
  constexpr std::size_t piece_bytes = 100;
  std::minstd_rand random{7};
  for (std::size_t at = 0; at < text.size(); at += piece_bytes) {
    if (::send(fd, text.data() + at, piece_bytes, MSG_NOSIGNAL) < 0) return;
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds{random() % 80};
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
  }
  ::shutdown(fd, SHUT_WR);
}

// Until EOF; every so often it is busy for some turns.
task<> consume_slowly(few_buffers& here, int fd, recv_stream& from, reading& into) {
  for (int count = 1;; ++count) {
    into.queued_most = std::max(into.queued_most, from.size());
    received got = co_await from.next();
    if (got.result.error() == ENOBUFS && here.pool.lent() > 0) {
      got = co_await uring::recv_into_next_return(here.source, fd, here.pool);
    }
    if (got.result && got.result.count() == 0) co_return;
    if (!got.result && !got.result.is_passing() && got.result.error() != ENOBUFS) ++into.errors;
    into.text += text_of(got.bytes());
    got.lease = {};
    if (count % 7 == 0) co_await course_test::pass_turns(here.context, 3);
  }
}

// Until EOF, with waits that end early all the time.
task<> consume_impatiently(recv_stream& from, reading& into) {
  for (;;) {
    const received got = co_await uring::next_within(from, 30us);
    if (got.result.error() == ETIME) ++into.late;
    if (got.result && got.result.count() == 0) co_return;
    into.text += text_of(got.bytes());
  }
}

}  // namespace

TEST_CASE("10 a slow consumer and a queue that overflows lose no byte", "[10]") {
  const std::size_t mode = GENERATE(range(std::size_t{0}, course_test::all_rings.size()));
  INFO("ring " << mode << " of course_test::all_rings");
  uring::ring_options options = course_test::all_rings[mode];
  options.sq_entries = options.cq_entries = 4;
  few_buffers here{options, 64};
  const socket_pair pair = course_test::tcp_pair();
  const std::string text = course_test::pattern(static_cast<unsigned>(mode), bytes);
  reading read;
  {
    const std::jthread producer{[&] { produce(pair.ours.get(), text); }};
    recv_stream from{here.source, {pair.theirs.get(), &here.pool}, 4};
    here.context.run(
        uring::finally(consume_slowly(here, pair.theirs.get(), from, read), from.end()));
  }
  CHECK(compare_bytes(read.text, text) == identical);
  CHECK(read.errors == 0);
  UNSCOPED_INFO("no item ever waited: this consumer was not slow");
  CHECK(read.queued_most >= 4);
  CHECK(here.pool.lent() == 0);
}

TEST_CASE("10 waits that end early lose no byte", "[10]") {
  few_buffers here{{.mode = uring::ring_mode::defer}, 4096};
  const socket_pair pair = course_test::tcp_pair();
  const std::string text = course_test::pattern(1, 20'000);
  reading read;
  {
    const std::jthread producer{[&] { produce_in_pieces(pair.ours.get(), text); }};
    recv_stream from{here.source, {pair.theirs.get(), &here.pool}};
    here.context.run(uring::finally(consume_impatiently(from, read), from.end()));
  }
  UNSCOPED_INFO("after " << read.late << " waits that ended early");
  CHECK(compare_bytes(read.text, text) == identical);
}
