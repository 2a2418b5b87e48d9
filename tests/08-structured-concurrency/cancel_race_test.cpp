// SPDX-License-Identifier: MIT
// Tasks 08.3 and 08.4: ten thousand cancels against ten thousand completions. A request ends in one
// way: it has received the byte, or the byte is still in the socket. Never both, never neither.
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "cancel_source.hpp"
#include "counted.hpp"
#include "deadline.hpp"
#include "operations.hpp"
#include "ring_modes.hpp"
#include "socket_pair.hpp"
#include "turns.hpp"
#include "when_all.hpp"

using namespace std::chrono_literals;
using course_test::cancel_after;
using course_test::counted;
using uring::cancel_source;
using uring::io_context;
using uring::io_result;
using uring::task;

namespace {

// On another thread, so that its bytes come at any point of what the loop does.
class writer {
 public:
  explicit writer(std::size_t bytes_max) : sockets_(bytes_max + 1, nobody) {}
  ~writer() { write_soon(nobody); }

  // One byte into this socket, soon.
  void write_soon(int fd) {
    sockets_.at(asked_) = fd;
    ++asked_;
    asked_.notify_one();
  }

 private:
  static constexpr int nobody = -1;

  void write_all() {
    for (std::size_t written = 0;; ++written) {
      asked_.wait(written);
      if (sockets_[written] == nobody) return;
      const char byte = 'x';
      if (::send(sockets_[written], &byte, 1, MSG_NOSIGNAL) != 1) return;
    }
  }

  std::vector<int> sockets_;
  std::atomic<std::size_t> asked_ = 0;
  std::jthread thread_{[this] { write_all(); }};
};

struct tally {
  int completed = 0;
  int canceled = 0;
  int otherwise = 0;
  int miscounted = 0;  // sockets that had a byte too many or too few at the end
};

using limit = std::optional<std::chrono::nanoseconds>;

task<> receive_byte(int fd, limit at_most, cancel_source& source, tally& ends, counted) {
  std::array<std::byte, 1> byte;
  io_result received{0};
  if (at_most.has_value()) {
    received = co_await uring::with_deadline(uring::recv_op(source, fd, byte), at_most);
  } else {
    received = co_await uring::recv_op(source, fd, byte);
  }
  if (received && received.count() == 1) {
    ++ends.completed;
  } else if (received.error() == ECANCELED) {
    ++ends.canceled;
  } else {
    ++ends.otherwise;
  }
}

// What it cannot cancel would wait forever: then everything is stopped.
task<> cancel_or_stop(io_context& context, int turns, cancel_source& source) {
  try {
    co_await cancel_after(context, turns, source);
  } catch (...) {
    context.stop();
    throw;
  }
}

constexpr int lanes = 50;
constexpr int rounds = 200;

// By turns: the byte is there already; it comes about now; it comes only after the end.
task<> race(io_context& context, writer& other, const course_test::socket_pair& sockets, int lane,
            limit at_most, tally& ends) {
  for (int i = lane; i < lane + rounds; ++i) {
    const bool comes_later = i % 8 == 7;
    if (i % 8 == 0) {
      const char byte = 'x';
      CHECK(::send(sockets.ours.get(), &byte, 1, MSG_NOSIGNAL) == 1);
    } else if (!comes_later) {
      other.write_soon(sockets.ours.get());
    }
    tally own;
    cancel_source source{context};
    cancel_source unused{context};
    co_await uring::when_all(unused, receive_byte(sockets.theirs.get(), at_most, source, own, {}),
                             cancel_or_stop(context, i % 3, source));
    if (comes_later) other.write_soon(sockets.ours.get());
    if (own.canceled > 0) {  // then its byte is still to be received
      std::array<std::byte, 2> rest;
      const io_result late = co_await uring::recv_op(context, sockets.theirs.get(), rest);
      if (!late || late.count() != 1) ++own.otherwise;
    }
    ends.completed += own.completed;
    ends.canceled += own.canceled;
    ends.otherwise += own.otherwise;
  }
  std::array<std::byte, 1> none;
  const io_result more = co_await uring::recv_op(context, sockets.theirs.get(), none, MSG_DONTWAIT);
  if (more.error() != EAGAIN) ++ends.miscounted;
}

// Many at a time, so that a turn has many of each.
task<> race_all(io_context& context, limit at_most, tally& ends) {
  std::vector<course_test::socket_pair> sockets;
  sockets.reserve(lanes);
  for (int lane = 0; lane < lanes; ++lane) sockets.push_back(course_test::unix_pair());
  writer other{static_cast<std::size_t>(lanes * rounds)};  // joined before the sockets are closed
  cancel_source unused{context};
  std::vector<task<>> all;
  all.reserve(lanes);
  for (int lane = 0; lane < lanes; ++lane) {
    const course_test::socket_pair& own = sockets[static_cast<std::size_t>(lane)];
    all.push_back(race(context, other, own, lane, at_most, ends));
  }
  co_await uring::when_all(unused, std::move(all));
}

void check_race(const uring::ring_options& options, limit at_most = std::nullopt) {
  io_context context{options};
  tally ends;
  context.run(race_all(context, at_most, ends));
  UNSCOPED_INFO("completed " << ends.completed << ", canceled " << ends.canceled);
  CHECK(ends.completed + ends.canceled == lanes * rounds);
  UNSCOPED_INFO(
      "on so many of " << lanes << " sockets a byte was reported as not received, and was, or the "
                       << "other way round; or a cancel ended a request of another source");
  CHECK(ends.miscounted == 0);
  UNSCOPED_INFO("a request ended in a third way, or a canceled one's byte was not there");
  CHECK(ends.otherwise == 0);
  UNSCOPED_INFO("one that comes after its byte and one that has none: both must happen");
  CHECK(ends.completed >= lanes * rounds / 8);
  CHECK(ends.canceled >= lanes * rounds / 8);
  CHECK(counted::live() == 0);
  CHECK(context.in_flight() == 0);
}

}  // namespace

TEST_CASE("08.3 ten thousand races end completed or canceled", "[08.3]") {
  check_race({.mode = uring::ring_mode::plain});
}

TEST_CASE("08.3 ten thousand races end completed or canceled, coop", "[08.3]") {
  check_race({.mode = uring::ring_mode::coop});
}

TEST_CASE("08.3 ten thousand races end completed or canceled, defer", "[08.3]") {
  check_race({.mode = uring::ring_mode::defer});
}

TEST_CASE("08.3 ten thousand races end completed or canceled, sqpoll", "[08.3]") {
  check_race({.mode = uring::ring_mode::sqpoll});
}

TEST_CASE("08.3 ten thousand races end completed or canceled, tiny rings", "[08.3]") {
  check_race(course_test::tiny_rings);
}

TEST_CASE("08.3 ten thousand races end completed or canceled, defer and tiny rings", "[08.3]") {
  check_race({.mode = uring::ring_mode::defer, .sq_entries = 4, .cq_entries = 8});
}

TEST_CASE("08.4 ten thousand races with a deadline end completed or canceled", "[08.4]") {
  check_race({.mode = uring::ring_mode::plain}, 10s);
}

TEST_CASE("08.4 ten thousand races with a deadline end completed or canceled, sqpoll", "[08.4]") {
  check_race({.mode = uring::ring_mode::sqpoll}, 10s);
}

TEST_CASE("08.4 ten thousand races with a deadline end completed or canceled, defer and tiny rings",
          "[08.4]") {
  check_race({.mode = uring::ring_mode::defer, .sq_entries = 4, .cq_entries = 8}, 10s);
}
