// SPDX-License-Identifier: MIT
// Task 05.4, and what the ring promises besides: waits told apart, nothing lost, nothing held.
#include "ring.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <type_traits>

#include "alarms.hpp"
#include "errors.hpp"
#include "feature.hpp"
#include "patience.hpp"
#include "pipe_ends.hpp"
#include "process_counts.hpp"
#include "raw_ring.hpp"
#include "refuse_calls.hpp"
#include "scripted_ring.hpp"
#include "socket_pair.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using uring::ring;
using uring::ring_mode;
using uring::wake;

template <>
struct Catch::StringMaker<wake> {
  static std::string convert(wake why) {
    switch (why) {
      case wake::completions:
        return "completions";
      case wake::timeout:
        return "timeout";
      case wake::signal:
        return "signal";
      case wake::overloaded:
        return "overloaded";
    }
    return "unknown";
  }
};

// A program may have both, chapter 04's copy of a CQE and this one.
static_assert(!std::is_same_v<uring::raw_completion, uring::completion>);

namespace {

constexpr uring::ring_options tiny{.sq_entries = 4, .cq_entries = 8};
constexpr uring::ring_options tiny_sqpoll{
    .mode = ring_mode::sqpoll, .sq_entries = 4, .cq_entries = 8};

void add_nop(ring& to, std::uint64_t user_data) {
  ::io_uring_sqe& sqe = to.get_sqe();
  ::io_uring_prep_nop(&sqe);
  ::io_uring_sqe_set_data64(&sqe, user_data);
}

// A submit takes this one, and none behind it: the kernel has no such operation.
void add_bad(ring& to) {
  ::io_uring_sqe& sqe = to.get_sqe();
  ::io_uring_prep_nop(&sqe);
  sqe.opcode = 255;
}

// Everything that completes until `count` have, as a set: the kernel may answer in any order.
std::multiset<std::uint64_t> collect(ring& from, std::size_t count) {
  std::multiset<std::uint64_t> done;
  for (int waits = 0; done.size() < count && waits < 1000; ++waits) {
    if (from.submit_and_wait(1000ms) == wake::timeout) break;
    for (const uring::completion& each : from.reap()) done.insert(each.user_data);
  }
  return done;
}

std::multiset<std::uint64_t> numbers_below(std::uint64_t end) {
  std::multiset<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < end; ++i) numbers.insert(i);
  return numbers;
}

// Completed and not fetched yet, of this process's one ring, by its fdinfo.
std::size_t completions_in_queue() {
  std::size_t head = 0;
  std::size_t tail = 0;
  for (const auto& [fd, target] : course_test::open_fds()) {
    if (target != "anon_inode:[io_uring]") continue;
    std::ifstream info{"/proc/self/fdinfo/" + std::to_string(fd)};
    for (std::string word; info >> word;) {
      if (word == "CqHead:") info >> head;
      if (word == "CqTail:") info >> tail;
    }
  }
  return tail - head;
}

// A ring that may not be entered: its submission queue is full, and its completion queue holds
// `completed`. Every entry fails with `error`, for good.
struct refusal {
  int error = 0;
  std::uint64_t completed = 0;
  std::chrono::milliseconds deadline{10s};  // of 1,000 attempts, with a pause of 1 ms after each
};

constexpr const char* no_end =
    "there was no end to it: reserve() gives up after attempts_max tries";

// What `work` says of such a ring, or the exception that it throws; no_end at the deadline. It runs
// in a child, since a seccomp filter stays, and since a loop without an end can be ended there.
std::string refused(const refusal& how, const std::function<std::string(ring&)>& work) {
  const course_test::pipe_ends pipe = course_test::make_pipe();
  const ::pid_t child = common::check(::fork(), "fork");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::string said;
    try {
      ring full{tiny};
      for (std::uint64_t i = 0; i < how.completed; ++i) add_nop(full, 100 + i);
      if (how.completed > 0) (void)full.submit_and_wait(1000ms);
      for (std::uint64_t i = 0; i < 4; ++i) add_nop(full, i);
      course_test::refuse_io_uring_enter(how.error);
      said = work(full);
    } catch (const std::exception& thrown) {
      said = thrown.what();
    }
    const auto written = ::write(pipe.write.get(), said.data(), said.size());
    ::_exit(written > 0 ? 0 : 1);
  }
  std::string said = no_end;
  ::pollfd answer{.fd = pipe.read.get(), .events = POLLIN, .revents = 0};
  if (::poll(&answer, 1, static_cast<int>(how.deadline.count()) * course_test::patience()) == 1) {
    said.resize(1000);
    said.resize(static_cast<std::size_t>(
        common::check(::read(pipe.read.get(), said.data(), said.size()), "read")));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return said;
}

std::string reserve_one(ring& full) {
  full.reserve(1);
  if (::io_uring_sq_space_left(&full.handle()) > 0) return "reserve() found room";
  return "reserve() returned without room: after attempts_max tries, it throws";
}

// Fills the queue, and asks for room: the kernel's thread is as far as `pace` says.
void reserve_beside(course_test::poller_pace pace) {
  ring full{tiny_sqpoll};
  const course_test::scripted_poller thread{pace};
  for (std::uint64_t i = 0; i < 4; ++i) add_nop(full, i);
  full.reserve(1);
}

// What a call that may throw leaves behind.
void reserve_in_vain(ring& full) {
  try {
    full.reserve(1);
  } catch (const std::system_error&) {
  }
}

}  // namespace

TEST_CASE("05.4 a hundred submissions go through a queue of four", "[05.4]") {
  ring small{tiny};
  INFO("when the queue is full, submit its entries; each of them completes once");
  for (std::uint64_t i = 0; i < 100; ++i) add_nop(small, i);
  CHECK(collect(small, 100) == numbers_below(100));
}

TEST_CASE("05.4 a reserved chain is not torn apart", "[05.4]") {
  ring small{tiny};
  for (std::uint64_t i = 0; i < 3; ++i) add_nop(small, i);  // room for one more
  small.reserve(2);
  ::io_uring_sqe& first = small.get_sqe();
  ::io_uring_prep_read(&first, -1, nullptr, 0, 0);  // fails, and so cancels what is linked to it
  first.flags |= IOSQE_IO_LINK;
  ::io_uring_sqe_set_data64(&first, 10);
  ::io_uring_sqe& second = small.get_sqe();
  ::io_uring_prep_nop(&second);
  ::io_uring_sqe_set_data64(&second, 11);

  std::int32_t res_of_second = 0;
  int completed = 0;
  while (completed < 5 && small.submit_and_wait(1000ms) == wake::completions) {
    for (const uring::completion& each : small.reap()) {
      ++completed;
      if (each.user_data == 11) res_of_second = each.res;
    }
  }
  REQUIRE(completed == 5);
  UNSCOPED_INFO(
      "the first of a linked pair was submitted without the second, so nothing held them together: "
      "make room for `count` at once, not for one");
  CHECK(res_of_second == -ECANCELED);
}

TEST_CASE("05.4 the whole queue can be reserved", "[05.4]") {
  ring small{tiny};
  add_nop(small, 1);
  UNSCOPED_INFO("a queue of four has room for four once its entries were submitted");
  REQUIRE_NOTHROW(small.reserve(4));
  CHECK(::io_uring_sq_space_left(&small.handle()) == 4);
}

TEST_CASE("05 reserve submits nothing while there is room") {
  ring small{tiny};
  add_nop(small, 1);
  small.reserve(3);
  UNSCOPED_INFO("there was room for three: this system call was not needed");
  CHECK(small.reap().empty());
}

TEST_CASE("05.4 a submit that a signal interrupts is tried again", "[05.4]") {
  const std::string said = refused({.error = EINTR, .deadline = 3s}, reserve_one);
  UNSCOPED_INFO(
      "EINTR from io_uring_enter: nothing was lost, submit again. (Its negative number is what "
      "io_uring_submit returned: liburing returns -errno, and does not set errno)");
  CHECK_THAT(said, ContainsSubstring("EAGAIN"));
}

TEST_CASE("05.4 a submit without memory is tried again, but not forever", "[05.4]") {
  const std::string said = refused({.error = EAGAIN}, reserve_one);
  UNSCOPED_INFO("EAGAIN from io_uring_enter passes; give up after attempts_max tries");
  CHECK_THAT(said, ContainsSubstring("EAGAIN"));
}

TEST_CASE("05.4 completions are fetched when the kernel cannot take more requests", "[05.4]") {
  for (const int error : {EAGAIN, EBUSY}) {
    const std::string said = refused({.error = error, .completed = 4}, [](ring& full) {
      reserve_in_vain(full);
      return std::to_string(completions_in_queue()) + " left";
    });
    UNSCOPED_INFO(common::describe_errno(error)
                  << ": only completions that are fetched make room: hold_completions()");
    CHECK(said == "0 left");
  }
}

TEST_CASE("05.4 completions are not fetched when a submit succeeds", "[05.4]") {
  ring small{tiny};
  for (std::uint64_t i = 0; i < 9; ++i) add_nop(small, i);  // eight of them are submitted
  UNSCOPED_INFO(
      "two submits succeeded, and completions were fetched all the same, with a pause and another "
      "system call: hold_completions() is for EBUSY and EAGAIN");
  CHECK(completions_in_queue() == 8);
}

TEST_CASE("05.4 completions that were fetched to make room come with the next reap", "[05.4]") {
  const std::string said = refused({.error = EAGAIN, .completed = 4}, [](ring& full) {
    reserve_in_vain(full);
    return std::to_string(full.reap().size()) + " of 4";
  });
  UNSCOPED_INFO(
      "completions that were fetched to make room are lost: hold_completions() keeps them for the "
      "next reap()");
  CHECK(said == "4 of 4");
}

TEST_CASE("05 a wait does not wait while completions are there that were fetched to make room") {
  const std::string said = refused({.error = EAGAIN, .completed = 4}, [](ring& full) {
    reserve_in_vain(full);
    return Catch::StringMaker<wake>::convert(full.submit_and_wait(10ms));
  });
  UNSCOPED_INFO(
      "the next completion may depend on those that were fetched: a wait could last forever");
  CHECK(said == Catch::StringMaker<wake>::convert(wake::completions));
}

TEST_CASE("05.4 a submit that takes only a part is followed by another", "[05.4]") {
  ring small{tiny};
  add_bad(small);
  for (std::uint64_t i = 0; i < 3; ++i) add_nop(small, i);
  small.reserve(3);
  UNSCOPED_INFO(
      "three were reserved, and one submit did not make room for three: ask after each submit() "
      "whether there is room for `count`, not for any");
  CHECK(::io_uring_sq_space_left(&small.handle()) >= 3);

  ring large{{.sq_entries = 1024, .cq_entries = 2048}};
  for (int i = 0; i < 1000; ++i) add_bad(large);  // so there is room after attempts_max tries
  UNSCOPED_INFO(
      "the last of attempts_max tries has made room, but reserve() did not look: ask after each "
      "submit(), not before it");
  CHECK_NOTHROW(large.reserve(1024));
}

TEST_CASE("05.4 making room does not wait for anything to complete", "[05.4]") {
  const course_test::socket_pair silent = course_test::unix_pair();
  ring small{tiny};
  std::array<char, 16> buffer{};
  const course_test::alarms late{2s, 1s};  // they end a wait, if there is one
  for (int i = 0; i < 5; ++i) {
    ::io_uring_sqe& sqe = small.get_sqe();
    ::io_uring_prep_recv(&sqe, silent.theirs.get(), buffer.data(), buffer.size(), 0);
  }
  UNSCOPED_INFO("four clients that say nothing would hold up everybody: io_uring_submit, no wait");
  CHECK(late.count() == 0);
}

TEST_CASE("05.4 with sqpoll, reserve waits until the kernel's thread has made room", "[05.4]") {
  course_test::require_feature("sqpoll");
  UNSCOPED_INFO(
      "with sqpoll it is the kernel's thread that empties the queue, later than io_uring_submit() "
      "returns: reserve() calls submit(), which waits for that thread; hand_over() does not");
  CHECK_NOTHROW(reserve_beside(course_test::poller_pace::behind));
}

TEST_CASE("05.4 a submit that counts nothing has not failed", "[05.4]") {
  course_test::require_feature("sqpoll");
  UNSCOPED_INFO(
      "io_uring_submit returned 0, and that is a count: with sqpoll the kernel's thread may have "
      "taken everything just before. Only a negative result is an error");
  CHECK_NOTHROW(reserve_beside(course_test::poller_pace::ahead));
}

TEST_CASE("05.4 a refusal that does not pass is an error with the call's name", "[05.4]") {
  const std::string said = refused({.error = EPERM, .deadline = 3s}, reserve_one);
  UNSCOPED_INFO("neither EINTR, EBUSY nor EAGAIN: throw_error(submitted, \"io_uring_enter\")");
  CHECK_THAT(said, ContainsSubstring("io_uring_enter: EPERM"));
}

TEST_CASE("05 a ring works in every mode") {
  const auto [mode, feature] = GENERATE(
      std::pair{ring_mode::plain, "ring"}, std::pair{ring_mode::coop, "coop_taskrun"},
      std::pair{ring_mode::defer, "defer_taskrun"}, std::pair{ring_mode::sqpoll, "sqpoll"});
  course_test::require_feature(feature);
  ring any{{.mode = mode, .sq_entries = 4, .cq_entries = 8}};
  for (std::uint64_t i = 0; i < 100; ++i) add_nop(any, i);
  UNSCOPED_INFO("ring mode " << uring::name_of(mode));
  CHECK(collect(any, 100) == numbers_below(100));
}

TEST_CASE("05 a wait with nothing to wait for ends at its limit") {
  ring idle{{}};
  CHECK(idle.submit_and_wait(10ms) == wake::timeout);
  CHECK(idle.reap().empty());
}

TEST_CASE("05 a signal ends a wait, and loses nothing") {
  ring idle{{}};
  {
    const course_test::alarms ticking{5ms};  // not one alone: that may come before the wait
    CHECK(idle.submit_and_wait(5000ms) == wake::signal);
  }
  add_nop(idle, 0);
  CHECK(collect(idle, 1) == numbers_below(1));
}

TEST_CASE("05 completions beyond the completion queue wait in the kernel") {
  ring small{tiny};
  for (std::uint64_t i = 0; i < 64; ++i) add_nop(small, i);  // eight times what the CQ holds
  CHECK(collect(small, 64) == numbers_below(64));
}

TEST_CASE("05 without memory for requests a wait says overloaded") {
  const std::string said = refused({.error = EAGAIN}, [](ring& full) {
    return Catch::StringMaker<wake>::convert(full.submit_and_wait(10ms));
  });
  CHECK(said == "overloaded");
}

TEST_CASE("05 a ring that is destroyed lets go of every buffer") {
  const course_test::socket_pair sockets = course_test::unix_pair();
  std::array<char, 16> buffer{};
  {
    ring brief{{}};
    ::io_uring_sqe& sqe = brief.get_sqe();
    ::io_uring_prep_recv(&sqe, sockets.theirs.get(), buffer.data(), buffer.size(), 0);
    REQUIRE(brief.submit_and_wait(0ms) == wake::timeout);
  }
  REQUIRE(::send(sockets.ours.get(), "mine", 4, 0) == 4);
  std::array<char, 16> other{};
  UNSCOPED_INFO("the request was still in flight, and has received into a buffer that is gone");
  CHECK(::recv(sockets.theirs.get(), other.data(), other.size(), MSG_DONTWAIT) == 4);
  CHECK(buffer == std::array<char, 16>{});
}

TEST_CASE("05 if the kernel lacks a mode, a simpler one is used") {
  std::string tried;
  const auto kernel_6_0 = [&tried](ring_mode mode) {  // SINGLE_ISSUER, but no DEFER_TASKRUN
    tried += std::string{uring::name_of(mode)} + " ";
    return mode == ring_mode::defer ? -EINVAL : 0;
  };
  CHECK(uring::set_up_some_mode(ring_mode::defer, kernel_6_0) == ring_mode::coop);
  const auto old_kernel = [&tried](ring_mode mode) {
    tried += std::string{uring::name_of(mode)} + " ";
    return mode == ring_mode::plain ? 0 : -EINVAL;
  };
  CHECK(uring::set_up_some_mode(ring_mode::defer, old_kernel) == ring_mode::plain);
  CHECK(uring::set_up_some_mode(ring_mode::sqpoll, old_kernel) == ring_mode::plain);
  CHECK(tried == "defer coop defer coop default sqpoll default ");
}

TEST_CASE("05 a kernel that grants no ring is an error that says what to do") {
  for (const int error : {EPERM, ENOSYS, ENOMEM}) {
    const auto no_ring = [error](ring_mode) { return -error; };
    CHECK_THROWS_WITH(
        uring::set_up_some_mode(ring_mode::coop, no_ring),
        ContainsSubstring(common::describe_errno(error)) && ContainsSubstring("To do: "));
  }
}
