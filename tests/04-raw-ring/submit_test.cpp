// SPDX-License-Identifier: MIT
// Task 04.3: SQEs on a ring whose kernel is the test, then on one with a kernel behind it.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <set>
#include <system_error>
#include <thread>

#include "alarms.hpp"
#include "errors.hpp"
#include "eventually.hpp"
#include "fake_ring.hpp"
#include "live_ring.hpp"
#include "patience.hpp"
#include "pipe_ends.hpp"
#include "refuse_calls.hpp"
#include "store_trap.hpp"

using course_test::fake_ring;
using course_test::live_ring;
using uring::entered;

namespace {

// Runs on a thread of its own, because a seccomp filter stays as long as its thread.
void on_filtered_thread(const std::function<void()>& work) {
  std::exception_ptr failure;
  std::thread filtered{[&] {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  }};
  filtered.join();
  if (failure) std::rethrow_exception(failure);
}

// What submit_and_wait(1) makes of an io_uring_enter that fails like this.
// Fills the CQ of a ring of four entries, lets four more completions overflow, and then makes room,
// as if the first eight had been reaped.
void overflow_by_four(live_ring& ring) {
  for (std::uint64_t i = 0; i < 12; ++i) {
    ring.add_nop(i);
    if (i % 4 == 3) (void)ring->submit_and_wait(0);
  }
  REQUIRE(ring.completed() == 8);
  const uring::completion_view cq = ring.memory().view().cq;
  std::atomic_ref{*cq.head}.store(8, std::memory_order_release);
}

entered entered_with(int error) {
  entered got = entered::ok;
  on_filtered_thread([&] {
    uring::ring_memory memory{4};
    uring::raw_ring ring{memory.view()};
    ::io_uring_sqe* const sqe = ring.try_get_sqe();
    sqe->opcode = IORING_OP_NOP;
    course_test::refuse_io_uring_enter(error);
    got = ring.submit_and_wait(1);
  });
  return got;
}

}  // namespace

TEST_CASE("04.3 an SQE comes empty, whatever its slot held before", "[04.3]") {
  fake_ring fake;
  uring::raw_ring ring{fake.view()};
  const ::io_uring_sqe* const sqe = ring.try_get_sqe();
  REQUIRE(sqe == &fake.sqes[0]);
  std::array<std::uint8_t, sizeof(::io_uring_sqe)> bytes{};
  std::memcpy(bytes.data(), sqe, bytes.size());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    UNSCOPED_INFO(
        "byte " << at << " of 64 is what the request before left there. Its flags, for one, would "
                << "apply to the new one: clear the whole SQE, `sqe = {}`");
    REQUIRE(bytes.at(at) == 0);
  }
}

TEST_CASE("04.3 taking an SQE shows the kernel nothing yet", "[04.3]") {
  fake_ring fake;
  uring::raw_ring ring{fake.view()};
  REQUIRE(ring.try_get_sqe() != nullptr);
  UNSCOPED_INFO("the tail moved, and the SQE is not filled in: the kernel may take it as it is");
  CHECK(fake.sq_tail == 0);
  ring.publish();
  CHECK(fake.sq_tail == 1);
}

TEST_CASE("04.3 when the tail moves, the SQEs and the array are in memory", "[04.3]") {
  fake_ring fake;
  course_test::store_trap tail;
  uring::ring_view view = fake.view();
  view.sq.tail = tail.word();
  std::array<std::uint64_t, 2> seen{};
  tail.arm([&] {  // what a kernel thread would see that had waited for just this store
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const std::uint32_t slot = fake.array[i];
      if (slot < fake_ring::sq_entries) seen[i] = fake.sqes[slot].user_data;
    }
  });
  uring::raw_ring ring{view};
  for (std::uint64_t user_data : {11U, 12U}) {
    ::io_uring_sqe* const sqe = ring.try_get_sqe();
    REQUIRE(sqe != nullptr);
    sqe->user_data = user_data;
  }
  ring.publish();
  REQUIRE(tail.sprung());
  UNSCOPED_INFO("the tail was stored before the SQE and its array entry");
  CHECK((seen[0] == 11 && seen[1] == 12));
  CHECK(*tail.word() == 2);
}

TEST_CASE("04.3 the array names the SQE that stands in each slot", "[04.3]") {
  fake_ring fake;
  uring::raw_ring ring{fake.view()};
  for (std::uint32_t i = 0; i < fake_ring::sq_entries; ++i) {
    ::io_uring_sqe* const sqe = ring.try_get_sqe();
    REQUIRE(sqe != nullptr);
    UNSCOPED_INFO(
        "the kernel finds an SQE through the array, and this entry is still garbage: the slot of "
        "an index is index & mask, with the mask of the same queue, and the mask is entries - 1");
    CHECK(&fake.sqes[fake.array[i] % fake_ring::sq_entries] == sqe);
    CHECK(fake.array[i] != fake_ring::garbage);
  }
}

TEST_CASE("04.3 all SQEs that were taken are published at once", "[04.3]") {
  fake_ring fake;
  uring::raw_ring ring{fake.view()};
  for (int i = 0; i < 3; ++i) REQUIRE(ring.try_get_sqe() != nullptr);
  ring.publish();
  UNSCOPED_INFO(
      "three SQEs were taken and fewer published: the tail becomes sq_tail_, not one more than it "
      "was");
  CHECK(fake.sq_tail == 3);
}

TEST_CASE("04.3 looking for room in a full queue changes nothing in it", "[04.3]") {
  fake_ring fake;
  uring::raw_ring ring{fake.view()};
  for (std::uint64_t i = 1; i <= fake_ring::sq_entries; ++i) {
    ::io_uring_sqe* const sqe = ring.try_get_sqe();
    UNSCOPED_INFO("the queue has room for all of its entries: full is tail - head == entries");
    REQUIRE(sqe != nullptr);
    sqe->user_data = i;
  }
  ring.publish();
  (void)ring.try_get_sqe();
  ring.publish();
  UNSCOPED_INFO("try_get_sqe() counted an SQE that it did not return: look for room, then count");
  CHECK(fake.sq_tail == fake_ring::sq_entries);
  for (std::uint64_t i = 1; i <= fake_ring::sq_entries; ++i) {
    UNSCOPED_INFO("SQE " << i
                         << " was published, and try_get_sqe() wrote over it before the kernel had "
                         << "taken it: ask whether the queue is full before you touch a slot");
    CHECK(fake.take().user_data == i);
  }
}

TEST_CASE("04.3 a full queue has no SQE until the kernel has taken one", "[04.3]") {
  fake_ring fake;
  uring::raw_ring ring{fake.view()};
  for (std::uint32_t i = 0; i < fake_ring::sq_entries; ++i) {
    UNSCOPED_INFO("the queue has room for all of its entries: full is tail - head == entries");
    REQUIRE(ring.try_get_sqe() != nullptr);
  }
  UNSCOPED_INFO("the queue is full: this SQE is the kernel's until it moves the head");
  CHECK(ring.try_get_sqe() == nullptr);
  UNSCOPED_INFO(
      "try_get_sqe() published because the queue was full: the kernel sees the SQEs at publish(), "
      "and not before, because the caller may still fill them in");
  CHECK(fake.sq_tail == 0);
  ring.publish();
  CHECK(ring.try_get_sqe() == nullptr);
  (void)fake.take();
  UNSCOPED_INFO(
      "the kernel has taken an SQE, so its slot is free: was a try without room counted?");
  CHECK(ring.try_get_sqe() == &fake.sqes[0]);
  CHECK(ring.try_get_sqe() == nullptr);
}

TEST_CASE("04.3 indices go on past their wrap", "[04.3]") {
  fake_ring fake{fake_ring::before_wrap};
  uring::raw_ring ring{fake.view()};
  for (std::uint64_t i = 0; i < 20; ++i) {
    UNSCOPED_INFO(
        "an index is not a slot: index & mask is. And compare indices by their difference: after "
        "0xffffffff comes 0, which is not less");
    ::io_uring_sqe* const sqe = ring.try_get_sqe();
    REQUIRE(sqe != nullptr);
    sqe->user_data = i;
    ring.publish();
    CHECK(fake.sq_tail - fake.sq_head == 1);
    CHECK(fake.take().user_data == i);
  }
}

TEST_CASE("04.3 a full queue is seen across the wrap", "[04.3]") {
  fake_ring fake{fake_ring::before_wrap};
  uring::raw_ring ring{fake.view()};
  std::set<const ::io_uring_sqe*> taken;
  for (std::uint32_t i = 0; i < fake_ring::sq_entries; ++i) taken.insert(ring.try_get_sqe());
  CHECK(taken.size() == fake_ring::sq_entries);
  CHECK_FALSE(taken.contains(nullptr));
  CHECK(ring.try_get_sqe() == nullptr);
}

// On x86 a plain store is a release, so here only ThreadSanitizer sees a missing one (preset tsan).
TEST_CASE("04.3 another thread that acquires the tail sees whole SQEs", "[04.3]") {
  constexpr std::uint64_t count = 1000;  // each a switch of threads, if there is but one CPU
  fake_ring fake{fake_ring::before_wrap};
  uring::raw_ring ring{fake.view()};
  const auto enough = std::chrono::steady_clock::now() + std::chrono::seconds{3};  // if it is busy
  const auto deadline = enough + std::chrono::seconds{10};
  std::atomic<bool> all_published{false};
  std::uint64_t wrong = 0;
  std::uint64_t taken = 0;
  std::jthread kernel{[&] {
    while (taken < count && std::chrono::steady_clock::now() < deadline) {
      const bool was_last = all_published;
      if (std::atomic_ref{fake.sq_tail}.load(std::memory_order_acquire) == fake.sq_head) {
        if (was_last) break;
        std::this_thread::yield();
        continue;
      }
      const ::io_uring_sqe sqe = fake.take();
      if (sqe.user_data != taken || sqe.len != static_cast<std::uint32_t>(taken)) ++wrong;
      ++taken;
    }
  }};
  std::uint64_t published = 0;
  while (published < count && std::chrono::steady_clock::now() < enough) {
    ::io_uring_sqe* const sqe = ring.try_get_sqe();
    if (sqe == nullptr) {
      std::this_thread::yield();
      continue;
    }
    sqe->user_data = published;
    sqe->len = static_cast<std::uint32_t>(published);
    ring.publish();
    ++published;
  }
  all_published = true;
  kernel.join();
  UNSCOPED_INFO("the queue was full once, and stayed so: is the head loaded each time?");
  CHECK(published > fake_ring::sq_entries);
  UNSCOPED_INFO("the tail did not show everything that was published");
  CHECK(taken == published);
  UNSCOPED_INFO("an SQE was read half written: fill it in before publish(), release in publish()");
  CHECK(wrong == 0);
}

// All SQEs are published before the other thread begins, so only the order of the head's load
// counts. On x86 a plain load is an acquire, too: ThreadSanitizer sees a missing one (preset tsan).
TEST_CASE("04.3 an SQE that another thread still reads is not written again", "[04.3]") {
  fake_ring fake{fake_ring::before_wrap};
  uring::raw_ring ring{fake.view()};
  for (std::uint64_t i = 0; i < fake_ring::sq_entries; ++i) {
    ::io_uring_sqe* const sqe = ring.try_get_sqe();
    REQUIRE(sqe != nullptr);
    sqe->user_data = i;
  }
  ring.publish();
  std::uint64_t wrong = 0;
  std::jthread kernel{[&] {
    for (std::uint64_t i = 0; i < fake_ring::sq_entries; ++i) {
      if (fake.take().user_data != i) ++wrong;
    }
  }};
  std::uint32_t taken_again = 0;
  const auto takes_again = [&ring] { return ring.try_get_sqe() != nullptr; };
  while (taken_again < fake_ring::sq_entries &&
         course_test::eventually(std::chrono::seconds{5}, takes_again)) {
    ++taken_again;
  }
  kernel.join();
  UNSCOPED_INFO("the queue was full once, and stayed so: is the head loaded each time?");
  CHECK(taken_again == fake_ring::sq_entries);
  UNSCOPED_INFO("an SQE was written again while the other thread read it: ask for room first");
  CHECK(wrong == 0);
}

TEST_CASE("04.3 completions that were not reaped yet count as waited for", "[04.3]") {
  const course_test::pipe_ends silent = course_test::make_pipe();
  char byte = 0;
  live_ring ring{4};
  ring.add_nop(1);
  REQUIRE(ring->submit_and_wait(0) == entered::ok);
  REQUIRE(ring.completed() == 1);
  ring.add_read(silent.read.get(), &byte, 1, 2);
  bool relieved = false;  // it did not return, until the pipe had a byte
  {
    const std::jthread relief{[&](const std::stop_token& returned) {
      const auto is_over = [&returned] { return returned.stop_requested(); };
      relieved = !course_test::eventually(std::chrono::seconds{2}, is_over);
      if (relieved) [[maybe_unused]]
        const auto written = ::write(silent.write.get(), "x", 1);
    }};
    CHECK(ring->submit_and_wait(1) == entered::ok);
  }
  UNSCOPED_INFO("a completion lay there, and the kernel was not offered the new SQE: always enter");
  CHECK(ring->unsubmitted() == 0);
  UNSCOPED_INFO(
      "one CQE was there, and submit_and_wait(1) waited for another: the kernel counts those that "
      "you have not reaped, so pass `wanted` on unchanged");
  CHECK_FALSE(relieved);
}

TEST_CASE("04.3 it waits for two, although one was not reaped yet", "[04.3]") {
  const ::__kernel_timespec later{.tv_sec = 0, .tv_nsec = 200'000'000};
  live_ring ring{4};
  ring.add_nop(1);
  REQUIRE(ring->submit_and_wait(1) == entered::ok);
  ring.add_timeout(later, 2);
  REQUIRE(ring->submit_and_wait(2) == entered::ok);
  UNSCOPED_INFO(
      "submit_and_wait(2) returned when only the completion that you had not reaped was there: the "
      "kernel itself counts such completions, so pass `wanted` on unchanged");
  CHECK(ring.completed() == 2);
}

TEST_CASE("04.3 the kernel takes all published SQEs in one entry", "[04.3]") {
  live_ring ring{8};
  for (std::uint64_t i = 1; i <= 5; ++i) ring.add_nop(i);
  CHECK(ring->unsubmitted() == 5);
  CHECK(ring->submit_and_wait(1) == entered::ok);  // one: to wait for five could take forever
  UNSCOPED_INFO("the second argument of enter() says how many SQEs the kernel may take");
  REQUIRE(ring->unsubmitted() == 0);
  for (std::uint64_t i = 6; i <= 8; ++i) ring.add_nop(i);
  CHECK(ring->submit_and_wait(8) == entered::ok);
  CHECK(ring->unsubmitted() == 0);
  CHECK(ring.completed() == 8);
}

TEST_CASE("04.3 submitting without waiting does not wait", "[04.3]") {
  const course_test::pipe_ends pipe = course_test::make_pipe();
  char byte = 0;
  live_ring ring{4};
  ring.add_read(pipe.read.get(), &byte, 1, 7);
  UNSCOPED_INFO("a read of an empty pipe completes later; wanted was 0");
  CHECK(ring->submit_and_wait(0) == entered::ok);
  CHECK(ring->unsubmitted() == 0);
  CHECK(ring.completed() == 0);
  common::check(::write(pipe.write.get(), "x", 1), "write");
  CHECK(ring->submit_and_wait(1) == entered::ok);
  CHECK(byte == 'x');
}

TEST_CASE("04.3 completions that overflowed are fetched by an entry that does not wait", "[04.3]") {
  course_test::require_feature("nodrop");
  live_ring ring{4};  // and so 8 CQEs
  overflow_by_four(ring);
  (void)ring->submit_and_wait(0);
  UNSCOPED_INFO(
      "four completions overflowed, and there is room for them now: they come with an entry that "
      "has IORING_ENTER_GETEVENTS, so set it if overflowed(), even if `wanted` is 0. And enter "
      "each time, even if there is nothing to submit and nothing to wait for");
  CHECK(ring.completed() == 4);
}

TEST_CASE("04.3 completions that overflowed are fetched by an entry that submits", "[04.3]") {
  course_test::require_feature("nodrop");
  live_ring ring{4};
  overflow_by_four(ring);
  ring.add_nop(12);
  (void)ring->submit_and_wait(0);
  UNSCOPED_INFO(
      "four completions had overflowed, and the entry that submitted a fifth request fetched none "
      "of them: set IORING_ENTER_GETEVENTS if overflowed(), whether there are SQEs to submit or "
      "not. Otherwise a program that always has some would fill the kernel's memory");
  CHECK(ring.completed() == 5);
}

TEST_CASE("04.3 a signal is told from an entry that went well", "[04.3]") {
  course_test::require_feature("raw_ring");
  UNSCOPED_INFO(
      "enter() returned -EINTR, and that is entered::interrupted: nothing was waited for");
  CHECK(entered_with(EINTR) == entered::interrupted);
}

TEST_CASE("04.3 passing failures of io_uring_enter are told apart, and others are thrown",
          "[04.3]") {
  course_test::require_feature("raw_ring");
  CHECK(entered_with(EBUSY) == entered::cq_is_full);
  CHECK(entered_with(EAGAIN) == entered::short_of_memory);
  int error = 0;
  try {
    (void)entered_with(EBADR);
  } catch (const std::system_error& refusal) {
    error = refusal.code().value();
  }
  UNSCOPED_INFO("EBADR and the like do not pass: throw refused{\"io_uring_enter\", result}");
  REQUIRE(error != 0);
  UNSCOPED_INFO(
      "code() is an errno, and positive: `refused` turns the sign of a result, and a bare "
      "std::system_error does not");
  CHECK(error == EBADR);
}

TEST_CASE("04.3 an entry that takes no SQE is ok", "[04.3]") {
  live_ring ring{4};
  UNSCOPED_INFO(
      "enter() returned 0: no SQE was there to take. Only a negative result is a failure");
  CHECK(ring->submit_and_wait(0) == entered::ok);
}

TEST_CASE("04.3 a signal while it waits is an interruption, not a failure", "[04.3]") {
  const course_test::pipe_ends pipe = course_test::make_pipe();
  char byte = 0;
  live_ring ring{4};
  ring.add_read(pipe.read.get(), &byte, 1, 7);
  REQUIRE(ring->submit_and_wait(0) == entered::ok);  // an entry that takes SQEs returns their count
  entered got = entered::ok;
  bool relieved = false;  // the wait went on after its signals, until somebody wrote
  {
    const course_test::alarms ticking{std::chrono::milliseconds{5}};
    std::jthread relief{[&](const std::stop_token& interrupted) {
      const auto deadline =
          std::chrono::steady_clock::now() + std::chrono::seconds{2} * course_test::patience();
      while (!interrupted.stop_requested() && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
      }
      relieved = !interrupted.stop_requested();
      if (relieved) [[maybe_unused]]
        const auto written = ::write(pipe.write.get(), "x", 1);
    }};
    UNSCOPED_INFO("enter() returned -EINTR: a signal came, and nothing was lost");
    CHECK_NOTHROW(got = ring->submit_and_wait(1));
  }
  UNSCOPED_INFO(
      "signals came, and submit_and_wait() did not return: enter() once, and say `interrupted`");
  REQUIRE_FALSE(relieved);
  UNSCOPED_INFO(
      "submit_and_wait() did not wait: without IORING_ENTER_GETEVENTS the kernel ignores `wanted`. "
      "If it was told to take more SQEs than there are, it does not wait either: unsubmitted() "
      "counts them. And pass `wanted` on unchanged: here no SQE is left to take, and one "
      "completion is still to come");
  CHECK(got == entered::interrupted);
  common::check(::write(pipe.write.get(), "x", 1), "write");
  CHECK(ring->submit_and_wait(1) == entered::ok);
  CHECK(byte == 'x');
}

TEST_CASE("04.3 the SQEs behind a bad one still reach the kernel", "[04.3]") {
  live_ring ring{8};
  ring.add_nop(1);
  ::io_uring_sqe* const bad = ring->try_get_sqe();
  REQUIRE(bad != nullptr);
  bad->opcode = 255;
  bad->user_data = 2;
  ring.add_nop(3);
  UNSCOPED_INFO("the kernel took two of three SQEs: fewer than it was offered is no failure");
  CHECK(ring->submit_and_wait(0) == entered::ok);
  for (int tries = 0; tries < 3 && ring->unsubmitted() > 0; ++tries) {
    (void)ring->submit_and_wait(0);
  }
  UNSCOPED_INFO("the kernel stopped at the bad SQE; enter() again with what unsubmitted() says");
  CHECK(ring->unsubmitted() == 0);
  CHECK(ring.completed() == 3);
}
