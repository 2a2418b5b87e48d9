// SPDX-License-Identifier: MIT
// Task 08.4: deadlines that fire while data arrives. Whatever the times, every byte that a recv
// reports is the next one of the stream, and none is missing at its end.
#include <sys/socket.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <random>
#include <string>
#include <thread>

#include "bytes.hpp"
#include "counted.hpp"
#include "deadline.hpp"
#include "io_context.hpp"
#include "operations.hpp"
#include "ring_modes.hpp"
#include "socket_pair.hpp"
#include "task.hpp"

using namespace std::chrono_literals;
using course_test::counted;
using course_test::identical;
using uring::io_context;
using uring::io_result;
using uring::task;

namespace {

constexpr std::size_t piece_bytes = 48;

// In pieces, with pauses that are about as long as the deadlines.
void write_stream(int fd, const std::string& stream) {
  std::minstd_rand random{7};
  for (std::size_t at = 0; at < stream.size(); at += piece_bytes) {
    if (::send(fd, stream.data() + at, piece_bytes, MSG_NOSIGNAL) < 0) return;
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds{random() % 80};
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
  }
  ::shutdown(fd, SHUT_WR);
}

// So that the writer ends, too, if the reader fails.
struct hang_up {
  int fd;
  ~hang_up() { ::shutdown(fd, SHUT_RDWR); }
};

struct reading {
  std::string text;
  int rounds = 0;
  int late = 0;
  int otherwise = 0;
};

task<> read_stream(io_context& context, int fd, reading& into, counted) {
  std::minstd_rand random{11};
  std::array<char, 64> buffer;
  for (;; ++into.rounds) {
    buffer.fill('?');
    const std::chrono::microseconds at_most{random() % 120};
    const io_result received = co_await uring::with_deadline(
        uring::recv_op(context, fd, std::as_writable_bytes(std::span{buffer})), at_most);
    if (received.error() == ETIME) {
      ++into.late;
    } else if (!received) {
      ++into.otherwise;
    } else if (received.count() == 0) {
      co_return;
    } else {
      into.text.append(buffer.data(), received.count());
    }
  }
}

void check_stream(const uring::ring_options& options, std::size_t pieces = 5'000) {
  io_context context{options};
  const course_test::socket_pair sockets = course_test::tcp_pair();
  const std::string stream = course_test::pattern(1, pieces * piece_bytes);
  reading read;
  {
    const std::jthread writer{[&] { write_stream(sockets.ours.get(), stream); }};
    const hang_up at_the_end{sockets.theirs.get()};
    context.run(read_stream(context, sockets.theirs.get(), read, {}));
  }
  UNSCOPED_INFO("after " << read.rounds << " rounds, of which " << read.late
                         << " were late: a recv "
                         << "that was ended early and had bytes must report them");
  CHECK(course_test::compare_bytes(read.text, stream) == identical);
  UNSCOPED_INFO("a recv with a deadline ends with bytes, at EOF, or with ETIME");
  CHECK(read.otherwise == 0);
  CHECK(counted::live() == 0);
  CHECK(context.in_flight() == 0);
}

}  // namespace

TEST_CASE("08.4 deadlines around the arrival lose no byte", "[08.4]") {
  check_stream({.mode = uring::ring_mode::plain});
}

TEST_CASE("08.4 deadlines around the arrival lose no byte, coop", "[08.4]") {
  check_stream({.mode = uring::ring_mode::coop});
}

TEST_CASE("08.4 deadlines around the arrival lose no byte, defer", "[08.4]") {
  check_stream({.mode = uring::ring_mode::defer});
}

TEST_CASE("08.4 deadlines around the arrival lose no byte, sqpoll", "[08.4]") {
  check_stream({.mode = uring::ring_mode::sqpoll}, 1'000);  // each turn waits for another thread
}

TEST_CASE("08.4 deadlines around the arrival lose no byte, tiny rings", "[08.4]") {
  check_stream(course_test::tiny_rings);
}
