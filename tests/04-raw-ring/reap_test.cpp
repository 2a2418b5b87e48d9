// SPDX-License-Identifier: MIT
// Task 04.4: completions of a kernel that the test plays, then of the real one.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <exception>
#include <fstream>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "errors.hpp"
#include "eventually.hpp"
#include "fake_ring.hpp"
#include "live_ring.hpp"
#include "pipe_ends.hpp"
#include "process_counts.hpp"
#include "refuse_calls.hpp"
#include "store_trap.hpp"

using course_test::fake_ring;
using course_test::live_ring;
using uring::entered;
using uring::raw_completion;

namespace {

// Everything that there is, in pieces of `piece`, without entering the kernel.
std::vector<raw_completion> reap_all(uring::raw_ring& ring, std::size_t piece) {
  std::vector<raw_completion> all;
  std::vector<raw_completion> some(piece);
  for (std::size_t got = ring.reap(some); got > 0; got = ring.reap(some)) {
    all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(got));
    REQUIRE(all.size() < 100'000);  // a head that does not move would go on forever
  }
  return all;
}

std::set<std::uint64_t> names_of(const std::vector<raw_completion>& completions) {
  std::set<std::uint64_t> names;
  for (const raw_completion& each : completions) names.insert(each.user_data);
  return names;
}

// How often that thread of ours has gone to sleep.
std::size_t times_slept(::pid_t thread) {
  std::ifstream status{"/proc/self/task/" + std::to_string(thread) + "/status"};
  std::size_t times = 0;
  for (std::string word; status >> word;) {
    if (word == "voluntary_ctxt_switches:") status >> times;
  }
  return times;
}

std::chrono::nanoseconds cpu_time_of(std::thread& thread) {
  ::clockid_t clock{};
  ::timespec time{};
  if (::pthread_getcpuclockid(thread.native_handle(), &clock) != 0) return {};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

// A SIGUSR1 interrupts and does nothing else, for as long as this lives.
class interruptions {
 public:
  interruptions() {
    struct ::sigaction action{};
    action.sa_handler = [](int) {};  // and no SA_RESTART
    common::check(::sigaction(SIGUSR1, &action, &previous_), "sigaction SIGUSR1");
  }
  interruptions(interruptions&&) = delete;
  ~interruptions() { ::sigaction(SIGUSR1, &previous_, nullptr); }

 private:
  struct ::sigaction previous_{};
};

// A thread that waits while its entries fail. One that never returns shares this, and is left.
struct waiter {
  void run(int error) {
    try {
      course_test::refuse_io_uring_enter(error);
      waits = true;
      next = ring.wait();
    } catch (...) {
      failure = std::current_exception();
    }
    returned = true;
  }

  fake_ring fake;
  uring::raw_ring ring{fake.view()};
  raw_completion next;
  std::exception_ptr failure;
  std::atomic<bool> waits{false};
  std::atomic<bool> returned{false};
};

}  // namespace

TEST_CASE("04.4 an empty queue gives nothing", "[04.4]") {
  fake_ring fake;
  uring::raw_ring ring{fake.view()};
  std::array<raw_completion, 4> into{};
  CHECK(ring.reap(into) == 0);
  CHECK(fake.cq_head == 0);
}

TEST_CASE("04.4 completions come whole, the oldest first", "[04.4]") {
  fake_ring fake;
  uring::raw_ring ring{fake.view()};
  fake.complete(7, 100, 1);
  fake.complete(0xFFFF'FFFF'FFFF'FFFF, -EPIPE, 0x80000000);
  std::array<raw_completion, 4> into{};
  UNSCOPED_INFO("two CQEs lie between the head and at_.cq.tail: which tail did reap() load?");
  REQUIRE(ring.reap(into) == 2);
  UNSCOPED_INFO("copy the CQE's user_data: it names the request, and has 64 bits");
  CHECK((into[0].user_data == 7 && into[1].user_data == UINT64_MAX));
  UNSCOPED_INFO("copy the CQE's res: it is signed, because a failure is -errno");
  CHECK((into[0].res == 100 && into[1].res == -EPIPE));
  UNSCOPED_INFO("copy the CQE's flags, too, all 32 bits");
  CHECK((into[0].flags == 1 && into[1].flags == 0x80000000));
}

TEST_CASE("04.4 a completion that was reaped does not come again", "[04.4]") {
  fake_ring fake;
  uring::raw_ring ring{fake.view()};
  for (std::uint64_t i = 0; i < 3; ++i) fake.complete(i, 0);
  std::array<raw_completion, 8> into{};
  REQUIRE(ring.reap(into) == 3);
  UNSCOPED_INFO("the kernel's copy of the head tells it which slots it may use again");
  CHECK(fake.cq_head == 3);
  UNSCOPED_INFO("this completion was reaped before: is the head behind?");
  CHECK(ring.reap(into) == 0);
}

TEST_CASE("04.4 completions that do not fit stay for the next time", "[04.4]") {
  fake_ring fake;
  uring::raw_ring ring{fake.view()};
  for (std::uint64_t i = 0; i < 5; ++i) fake.complete(i, 0);
  UNSCOPED_INFO("`into` may be empty: ask whether it has room before each copy, not after it");
  REQUIRE(ring.reap({}) == 0);
  UNSCOPED_INFO("give back only what was copied: here that is nothing");
  CHECK(fake.cq_head == 0);
  std::array<raw_completion, 3> into{};
  REQUIRE(ring.reap(into) == 3);
  UNSCOPED_INFO("give back only what was copied: the head moves by three");
  CHECK(fake.cq_head == 3);
  REQUIRE(ring.reap(into) == 2);
  UNSCOPED_INFO("the slot of an index is index & mask, with the mask of the same queue");
  CHECK((into[0].user_data == 3 && into[1].user_data == 4));
}

TEST_CASE("04.4 a slot is given back only after it was copied", "[04.4]") {
  fake_ring fake;
  course_test::store_trap head;
  uring::ring_view view = fake.view();
  view.cq.head = head.word();
  for (std::uint64_t i = 0; i < 3; ++i) fake.complete(40 + i, 1);
  head.arm([&] {  // a kernel that has waited for room, and uses it at once
    for (::io_uring_cqe& cqe : fake.cqes) {
      cqe.user_data = fake_ring::garbage;
      cqe.res = -1;
    }
  });
  uring::raw_ring ring{view};
  std::array<raw_completion, 4> into{};
  REQUIRE(ring.reap(into) == 3);
  REQUIRE(head.sprung());
  UNSCOPED_INFO("the head moved first, and the kernel wrote over what was still to be copied");
  REQUIRE((into[0].user_data == 40 && into[0].res == 1));
  UNSCOPED_INFO(
      "the head was stored after the first copy: copy all, and then give the slots back by one "
      "store");
  CHECK((into[1].user_data == 41 && into[2].user_data == 42));
  CHECK((into[1].res == 1 && into[2].res == 1));
  CHECK(*head.word() == 3);
}

TEST_CASE("04.4 completions go on past the wrap of the index", "[04.4]") {
  fake_ring fake{fake_ring::before_wrap};
  uring::raw_ring ring{fake.view()};
  for (std::uint64_t round = 0; round < 5; ++round) {
    for (std::uint64_t i = 0; i < 6; ++i) fake.complete(10 * round + i, 0);
    std::array<raw_completion, 8> into{};
    UNSCOPED_INFO(
        "an index is not a slot: index & mask is. And after 0xffffffff comes 0: ask whether head "
        "and tail differ, not which is less. If you subtract them, do it in std::uint32_t: a "
        "64-bit difference does not wrap");
    REQUIRE(ring.reap(into) == 6);
    UNSCOPED_INFO("an index is not a slot: index & mask is, with the mask of the same queue");
    CHECK((into[0].user_data == 10 * round && into[5].user_data == 10 * round + 5));
  }
}

// On x86 a plain load is an acquire, so here only ThreadSanitizer sees a missing one (preset tsan).
TEST_CASE("04.4 completions of another thread are seen whole", "[04.4]") {
  constexpr std::uint64_t count = 1000;  // each a switch of threads, if there is but one CPU
  fake_ring fake{fake_ring::before_wrap};
  uring::raw_ring ring{fake.view()};
  const auto enough = std::chrono::steady_clock::now() + std::chrono::seconds{3};  // if it is busy
  const auto deadline = enough + std::chrono::seconds{10};
  std::atomic<bool> all_completed{false};
  std::uint64_t completed = 0;
  std::jthread kernel{[&] {
    while (completed < count && std::chrono::steady_clock::now() < enough) {
      const auto head = std::atomic_ref{fake.cq_head}.load(std::memory_order_acquire);
      if (fake.cq_tail - head == fake_ring::cq_entries) {
        std::this_thread::yield();
        continue;
      }
      fake.complete(completed, static_cast<std::int32_t>(completed));
      ++completed;
    }
    all_completed = true;
  }};
  std::uint64_t reaped = 0;
  std::uint64_t wrong = 0;
  std::array<raw_completion, 4> into{};
  while (reaped < count && std::chrono::steady_clock::now() < deadline) {
    const bool was_last = all_completed;
    const std::size_t got = ring.reap(into);
    for (std::size_t i = 0; i < got; ++i, ++reaped) {
      if (into[i].user_data != reaped || into[i].res != static_cast<std::int32_t>(reaped)) ++wrong;
    }
    if (got == 0 && was_last) break;
    if (got == 0) std::this_thread::yield();
  }
  kernel.join();
  UNSCOPED_INFO("the queue was full once, and stayed so: is the head stored after the copies?");
  CHECK(completed > fake_ring::cq_entries);
  UNSCOPED_INFO("reap() has not brought each completion once");
  CHECK(reaped == completed);
  UNSCOPED_INFO("a completion was read before it was whole, or after its slot was given back");
  CHECK(wrong == 0);
}

TEST_CASE("04.4 ten thousand NOPs go through four entries, each once", "[04.4]") {
  constexpr std::uint64_t count = 10'000;
  live_ring ring{4};
  std::vector<int> seen(count, 0);
  std::array<raw_completion, 4> into{};
  std::uint64_t given = 0;
  std::uint64_t reaped = 0;
  while (reaped < count) {
    for (; given < count && given - reaped < 4; ++given) ring.add_nop(given);
    REQUIRE(ring->submit_and_wait(1) == entered::ok);
    const std::size_t got = ring->reap(into);
    REQUIRE(got > 0);
    for (std::size_t i = 0; i < got; ++i) {
      REQUIRE(into[i].user_data < count);
      ++seen[into[i].user_data];
    }
    reaped += got;
  }
  UNSCOPED_INFO(
      "a completion was lost or doubled: compare head, tail and mask of the queue you advanced");
  CHECK(std::ranges::count(seen, 1) == static_cast<std::ptrdiff_t>(count));
}

TEST_CASE("04.4 more completions than the CQ holds are kept, flagged and drained", "[04.4]") {
  constexpr std::uint64_t count = 100;
  course_test::require_feature("nodrop");
  live_ring ring{4};  // and so 8 CQEs
  for (std::uint64_t i = 0; i < count; ++i) {
    ring.add_nop(i);
    if (i % 4 == 3) (void)ring->submit_and_wait(0);
  }
  UNSCOPED_INFO("the CQ is full, and the kernel holds the rest back: IORING_SQ_CQ_OVERFLOW");
  CHECK(ring->overflowed());

  std::vector<raw_completion> all = reap_all(*ring, 3);
  UNSCOPED_INFO("only the completions that fit into the CQ were reaped");
  CHECK(all.size() == ring.memory().params().cq_entries);
  for (int turns = 0; turns < 1000 && all.size() < count; ++turns) {
    (void)ring->submit_and_wait(0);
    const std::vector<raw_completion> some = reap_all(*ring, 3);
    all.insert(all.end(), some.begin(), some.end());
  }
  UNSCOPED_INFO(
      "completions that overflowed come only with an entry that asks for events: "
      "IORING_ENTER_GETEVENTS");
  CHECK(all.size() == count);
  CHECK(names_of(all).size() == count);
  CHECK_FALSE(ring->overflowed());
}

TEST_CASE("04.4 waiting brings every completion, overflow or not", "[04.4]") {
  constexpr std::uint64_t count = 20;
  course_test::require_feature("nodrop");
  live_ring ring{4};
  for (std::uint64_t i = 0; i < count; ++i) {
    ring.add_nop(i);
    if (i % 4 == 3) (void)ring->submit_and_wait(0);
  }
  std::vector<raw_completion> all(count);
  for (raw_completion& each : all) each = ring->wait();
  CHECK(names_of(all).size() == count);
}

TEST_CASE("04.4 a failed request has its errno in res, negative", "[04.4]") {
  live_ring ring{4};
  char byte = 0;
  ring.add_read(-1, &byte, 1, 5);
  const raw_completion failed = ring->wait();
  CHECK(failed.user_data == 5);
  CHECK(failed.res == -EBADF);
}

TEST_CASE("04.4 waiting submits the SQEs that were taken, and waits for a completion", "[04.4]") {
  const course_test::pipe_ends pipe = course_test::make_pipe();
  std::array<char, 16> buffer{};
  live_ring ring{4};
  ring.add_read(pipe.read.get(), buffer.data(), buffer.size(), 9);
  bool slept = false;
  std::jthread later{[&, waiter = ::gettid()] {
    const auto sleeps = [waiter] { return course_test::process_state(waiter) == 'S'; };
    slept = course_test::eventually(std::chrono::seconds{2}, sleeps);
    [[maybe_unused]] const auto written = ::write(pipe.write.get(), "hello", 5);
  }};
  const raw_completion read = ring->wait();
  later.join();
  UNSCOPED_INFO("wait() kept a CPU busy: enter to wait until one CQE is there, not for none");
  CHECK(slept);
  CHECK((read.user_data == 9 && read.res == 5));
  UNSCOPED_INFO("a read of 16 bytes that brought 5 is complete: res says how many");
  CHECK(std::string_view{buffer.data(), 5} == "hello");
}

TEST_CASE("04.4 waiting takes a completion that is there already", "[04.4]") {
  fake_ring fake;  // a ring whose descriptor is -1: entering it would throw
  uring::raw_ring ring{fake.view()};
  REQUIRE(ring.try_get_sqe() != nullptr);
  fake.complete(3, 0);
  raw_completion next;
  UNSCOPED_INFO("reap first: only an empty queue is a reason to enter the kernel");
  REQUIRE_NOTHROW(next = ring.wait());
  CHECK(next.user_data == 3);
  UNSCOPED_INFO(
      "a completion was there, and wait() published an SQE: submit_and_wait() publishes, and you "
      "need that only if no completion is there");
  CHECK(fake.sq_tail == 0);
}

TEST_CASE("04.4 waiting takes one completion, and leaves the others", "[04.4]") {
  fake_ring fake;  // a ring whose descriptor is -1: entering it would throw
  uring::raw_ring ring{fake.view()};
  for (std::uint64_t i = 0; i < 3; ++i) fake.complete(i, 0);
  for (std::uint64_t i = 0; i < 3; ++i) {
    raw_completion next;
    UNSCOPED_INFO(
        "three had completed, and wait() entered the kernel for number "
        << i + 1
        << ": a completion that it reaps and does not return is lost, so it must reap one");
    REQUIRE_NOTHROW(next = ring.wait());
    CHECK(next.user_data == i);
  }
}

TEST_CASE("04.4 waiting is over when one of two has completed", "[04.4]") {
  const course_test::pipe_ends ready = course_test::make_pipe();
  const course_test::pipe_ends silent = course_test::make_pipe();
  std::array<char, 2> bytes{};
  live_ring ring{4};
  ring.add_read(silent.read.get(), &bytes[0], 1, 1);
  ring.add_read(ready.read.get(), &bytes[1], 1, 2);
  common::check(::write(ready.write.get(), "x", 1), "write");
  bool relieved = false;  // wait() did not return, until the other pipe had a byte as well
  raw_completion first;
  {
    const std::jthread relief{[&](const std::stop_token& returned) {
      const auto is_over = [&returned] { return returned.stop_requested(); };
      relieved = !course_test::eventually(std::chrono::seconds{2}, is_over);
      if (relieved) [[maybe_unused]]
        const auto written = ::write(silent.write.get(), "x", 1);
    }};
    first = ring->wait();
  }
  UNSCOPED_INFO(
      "two reads were in flight and one had completed, but wait() waited for both: "
      "submit_and_wait(1), however many were taken");
  REQUIRE_FALSE(relieved);
  CHECK((first.user_data == 2 && first.res == 1));
}

TEST_CASE("04.4 waiting sleeps again after a signal", "[04.4]") {
  constexpr int signals = 3;  // the first may come just before the thread sleeps
  const course_test::pipe_ends pipe = course_test::make_pipe();
  char byte = 0;
  live_ring ring{4};
  ring.add_read(pipe.read.get(), &byte, 1, 9);
  const interruptions caught;
  int slept_again = 0;
  std::jthread other{[&, waiter = ::pthread_self(), tid = ::gettid()] {
    const auto sleeps = [tid] { return course_test::process_state(tid) == 'S'; };
    if (course_test::eventually(std::chrono::seconds{2}, sleeps)) {
      for (bool again = true; again && slept_again < signals;) {
        const std::size_t before = times_slept(tid);
        ::pthread_kill(waiter, SIGUSR1);
        again = course_test::eventually(std::chrono::seconds{2},
                                        [&] { return times_slept(tid) > before; });
        if (again) ++slept_again;
      }
    }
    [[maybe_unused]] const auto written = ::write(pipe.write.get(), "x", 1);
  }};
  const raw_completion read = ring->wait();
  other.join();
  UNSCOPED_INFO(
      "wait() returned without a completion: a signal had ended an entry that took an SQE, so the "
      "entry was ok. After each entry look for a completion, and if there is none, enter again");
  REQUIRE(read.user_data == 9);
  UNSCOPED_INFO(
      "a signal ended the entry, and after that wait() only looked again and again, and kept a CPU "
      "busy: each time that there is no completion, enter the kernel");
  CHECK(slept_again == signals);
  CHECK(read.res == 1);
}

// Every entry of the waiting thread fails here. Then its request completes.
TEST_CASE("04.4 waiting goes on after each failure that passes", "[04.4]") {
  for (const int error : {EINTR, EBUSY, EAGAIN}) {
    const auto shared = std::make_shared<waiter>();
    std::thread waiting{[shared, error] { shared->run(error); }};
    // Until it has spent 2 ms of CPU on entries that fail: a wait that gives up has returned then.
    (void)course_test::eventually(std::chrono::seconds{2}, [&] { return shared->waits.load(); });
    const auto start = cpu_time_of(waiting);
    (void)course_test::eventually(std::chrono::seconds{2}, [&] {
      return shared->returned || cpu_time_of(waiting) - start > std::chrono::milliseconds{2};
    });
    shared->fake.complete(4, 0);
    const auto returned = [&] { return shared->returned.load(); };
    const bool ended = course_test::eventually(std::chrono::seconds{5}, returned);
    ended ? waiting.join() : waiting.detach();
    UNSCOPED_INFO(
        "a completion is there, and wait() does not look: it enters again and again, and each "
        "entry fails. Look after each entry, however it ended. And submit_and_wait() enters once");
    REQUIRE(ended);
    UNSCOPED_INFO("-" << error << " passes: look for a completion again, and then enter again");
    REQUIRE(shared->failure == nullptr);
    UNSCOPED_INFO(
        "wait() returned without a completion: an entry may bring none, so look again after each "
        "(a loop, not an if)");
    CHECK(shared->next.user_data == 4);
  }
}
