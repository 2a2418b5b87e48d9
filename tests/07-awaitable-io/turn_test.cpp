// SPDX-License-Identifier: MIT
// Task 07.1: a turn of the loop. The test is the kernel, and the operations only take notes.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

#include "allocations.hpp"
#include "errors.hpp"
#include "io_handle.hpp"
#include "io_operation.hpp"
#include "io_queue.hpp"
#include "manual_ring.hpp"
#include "noting_canceler.hpp"

using namespace std::chrono_literals;
using course_test::manual_ring;
using uring::io_queue;

namespace {

// Keeps every completion that it is told of.
class noting : public uring::io_operation {
 public:
  noting() : io_operation{&on_completion} {}

  static inline std::vector<const io_operation*> order;  // of all that were told
  std::vector<uring::completion> told;

 private:
  static void on_completion(io_operation& self, const uring::completion& done) {
    order.push_back(&self);
    static_cast<noting&>(self).told.push_back(done);
  }
};

void start_nop(io_queue& queue, uring::io_operation& operation) {
  queue.start(operation, [](::io_uring_sqe& sqe) { ::io_uring_prep_nop(&sqe); });
}

// Starts its NOP again at each completion, as a task does that yields in a loop.
class repeating : public uring::io_operation {
 public:
  explicit repeating(io_queue& queue) : io_operation{&on_completion}, queue_{queue} {}

  int told = 0;

 private:
  static constexpr int told_max = 100;

  static void on_completion(io_operation& self, const uring::completion&) {
    auto& completed = static_cast<repeating&>(self);
    if (++completed.told < told_max) start_nop(completed.queue_, self);
  }

  io_queue& queue_;
};

class last_message final : public uring::message_receiver {
 public:
  void on_message(const uring::message& arrived) override {
    word = arrived.word;
    value = arrived.value;
    ++count;
  }

  std::uint64_t word = 0;
  std::int32_t value = 0;
  int count = 0;
};

}  // namespace

TEST_CASE("07.1 a turn brings a completion to its operation", "[07.1]") {
  io_queue queue;
  manual_ring kernel{queue};
  noting operation;
  start_nop(queue, operation);
  REQUIRE(queue.in_flight() == 1);
  kernel.answer(kernel.take(), -ECONNRESET, IORING_CQE_F_SOCK_NONEMPTY);
  UNSCOPED_INFO("the completion has come, and its operation was not told: deliver() it");
  REQUIRE(operation.told.size() == 1);
  CHECK(operation.told[0].res == -ECONNRESET);
  CHECK(operation.told[0].flags == IORING_CQE_F_SOCK_NONEMPTY);
  CHECK(queue.in_flight() == 0);
}

TEST_CASE("07.1 a turn delivers everything that has completed", "[07.1]") {
  io_queue queue;
  manual_ring kernel{queue};
  std::vector<noting> operations(3);
  std::vector<course_test::scripted_answer> answers;
  for (noting& each : operations) {
    start_nop(queue, each);
    answers.push_back({.user_data = kernel.take().user_data, .res = 1});
  }
  noting::order.clear();
  kernel.turn(answers);
  UNSCOPED_INFO("one turn may bring many completions: deliver all of them");
  REQUIRE(queue.in_flight() == 0);
  for (const noting& each : operations) CHECK(each.told.size() == 1);
  UNSCOPED_INFO("deliver them in their order, the oldest first");
  CHECK(noting::order ==
        std::vector<const uring::io_operation*>{&operations[0], &operations[1], &operations[2]});
}

TEST_CASE("07.1 a turn allocates nothing", "[07.1]") {
  io_queue queue;
  repeating operation{queue};
  start_nop(queue, operation);
  queue.turn();
  const std::size_t before = course_test::allocations();
  for (int i = 0; i < 10; ++i) queue.turn();
  const std::size_t after = course_test::allocations();
  REQUIRE(operation.told == 11);
  UNSCOPED_INFO(
      "a turn took memory: reap() has copied the completions already, so go through what it "
      "returns");
  CHECK(after == before);
  CHECK(queue.close());
}

TEST_CASE("07.1 a turn delivers completions however its wait has ended", "[07.1]") {
  for (const int error : {EINTR, ETIME, EAGAIN}) {
    io_queue queue;
    manual_ring kernel{queue};
    noting operation;
    start_nop(queue, operation);
    kernel.ring().fail_next_wait(error);
    kernel.answer(kernel.take(), 0);
    UNSCOPED_INFO("the wait ended with " << common::describe_errno(error)
                                         << ", and a completion had come all the same: reap() "
                                            "after every wait, whatever it returned");
    CHECK(operation.told.size() == 1);
  }
}

TEST_CASE("07.1 a turn ends although each completion starts a request that completes at once",
          "[07.1]") {
  io_queue queue{{.sq_entries = 4, .cq_entries = 64}};  // starting a fifth request submits
  std::deque<repeating> operations;
  for (int i = 0; i < 16; ++i) start_nop(queue, operations.emplace_back(queue));
  queue.turn();
  UNSCOPED_INFO(
      "the turn went on with completions of requests that it had started itself. Such a turn may "
      "never end, and then no cancel is made, not even for a stop: call reap() once in each turn");
  CHECK(std::ranges::all_of(operations, [](const repeating& each) { return each.told <= 1; }));
  CHECK(queue.close());
}

TEST_CASE("07.1 a turn is one system call", "[07.1]") {
  io_queue queue;
  manual_ring kernel{queue};
  std::vector<noting> operations(3);
  std::vector<course_test::scripted_answer> answers;
  for (noting& each : operations) {
    start_nop(queue, each);
    answers.push_back({.user_data = reinterpret_cast<std::uint64_t>(&each), .res = 0});
  }
  const int before = kernel.ring().system_calls();
  kernel.turn(answers);
  UNSCOPED_INFO("submit_and_wait() submits and waits in one call: a submit of its own is one more");
  CHECK(kernel.ring().system_calls() - before == 1);
  CHECK(kernel.waiting() == 3);
}

TEST_CASE("07.1 a wait has no time limit, except while everything stops", "[07.1]") {
  io_queue queue;
  manual_ring kernel{queue};
  noting operation;
  start_nop(queue, operation);
  kernel.turn({});
  UNSCOPED_INFO("nothing is to be done before a completion: a limit only wakes the thread for it");
  CHECK_FALSE(kernel.ring().last_limit().has_value());
  kernel.answer(kernel.take(), 0);

  queue.stop();
  start_nop(queue, operation);
  const std::uint64_t started = kernel.take().user_data;
  kernel.turn({{.user_data = started, .res = -ECANCELED}});
  UNSCOPED_INFO(
      "during a stop an operation may have been missed by the cancel, which is repeated "
      "after wait_at_most(): give that to the wait");
  REQUIRE(kernel.ring().last_limit().has_value());
  CHECK(*kernel.ring().last_limit() <= 100ms);
}

TEST_CASE("07.1 during a stop a wait that runs out of time repeats the cancel", "[07.1]") {
  io_queue queue;
  manual_ring kernel{queue};
  noting operation;
  start_nop(queue, operation);
  queue.stop();
  kernel.ring().fail_next_wait(ETIME);
  kernel.turn({});
  const ::io_uring_sqe missed = kernel.take();
  const ::io_uring_sqe cancel = kernel.take();
  REQUIRE(static_cast<int>(cancel.opcode) == IORING_OP_ASYNC_CANCEL);
  kernel.answer(cancel, -ENOENT);
  UNSCOPED_INFO(
      "the first cancel has missed the operation, and no other follows: turn() repeats it after "
      "wake::timeout, so return what submit_and_wait() has returned");
  REQUIRE(kernel.waiting() == 1);
  const ::io_uring_sqe repeated = kernel.take();
  CHECK(static_cast<int>(repeated.opcode) == IORING_OP_ASYNC_CANCEL);
  kernel.answer(repeated, 1);
  kernel.answer(missed, -ECANCELED);
  UNSCOPED_INFO("no wait has run out of time since: these ended with completions");
  CHECK(kernel.waiting() == 0);
  CHECK(queue.in_flight() == 0);
}

TEST_CASE("07 an operation with more completions to come stays in flight") {
  io_queue queue;
  manual_ring kernel{queue};
  noting operation;
  start_nop(queue, operation);
  const ::io_uring_sqe request = kernel.take();
  kernel.answer(request, 1, IORING_CQE_F_MORE);
  kernel.answer(request, 2, IORING_CQE_F_MORE | course_test::in_buffer(9));
  UNSCOPED_INFO("IORING_CQE_F_MORE: the kernel goes on working for it");
  CHECK(queue.in_flight() == 1);
  kernel.answer(request, 3, IORING_CQE_F_NOTIF);
  CHECK(queue.in_flight() == 0);
  REQUIRE(operation.told.size() == 3);
  CHECK(operation.told[1].flags >> IORING_CQE_BUFFER_SHIFT == 9);
  CHECK(operation.told[2].flags == IORING_CQE_F_NOTIF);
}

TEST_CASE("07 a request without an operation is in flight until it completes") {
  io_queue queue;
  manual_ring kernel{queue};
  queue.start_unheard([](::io_uring_sqe& sqe) { ::io_uring_prep_nop(&sqe); });
  CHECK(queue.in_flight() == 1);
  kernel.answer(kernel.take(), -ENOENT);
  CHECK(queue.in_flight() == 0);
}

TEST_CASE("07 a message goes to the receiver, word and value, and is no operation in flight") {
  io_queue queue;
  manual_ring kernel{queue};
  last_message received;
  queue.set_receiver(&received);
  noting operation;
  start_nop(queue, operation);
  kernel.bring({.word = 0xfeed'beef'cafe, .value = -17});
  CHECK(received.count == 1);
  CHECK(received.word == 0xfeed'beef'cafe);
  CHECK(received.value == -17);
  UNSCOPED_INFO("the operation has not completed; a message must not be counted as its completion");
  CHECK(queue.in_flight() == 1);
  CHECK(operation.told.empty());
  kernel.answer(kernel.take(), 0);
  CHECK(received.count == 1);
}

TEST_CASE("07 an unexpected message is dropped, and requests in flight stay so") {
  io_queue queue;
  manual_ring kernel{queue};
  kernel.bring({.word = 2, .value = 1});
  UNSCOPED_INFO("nothing is in flight, and a message must not lower that count");
  CHECK(queue.in_flight() == 0);
  noting operation;
  start_nop(queue, operation);
  const ::io_uring_sqe request = kernel.take();
  kernel.turn({{.user_data = 8 | uring::message_bit, .res = 5},
               {.user_data = request.user_data, .res = 3},
               {.user_data = 16 | uring::message_bit, .res = 5}});
  CHECK(queue.in_flight() == 0);
  REQUIRE(operation.told.size() == 1);
  CHECK(operation.told[0].res == 3);
}

TEST_CASE("07 an operation that throws keeps no completion from the others") {
  struct throwing : uring::io_operation {
    throwing() : io_operation{&on_completion} {}
    static void on_completion(io_operation&, const uring::completion&) {
      throw std::runtime_error{"no room for a cancel"};
    }
  };
  io_queue queue;
  manual_ring kernel{queue};
  throwing first;
  noting second;
  start_nop(queue, first);
  start_nop(queue, second);
  const ::io_uring_sqe a = kernel.take();
  const ::io_uring_sqe b = kernel.take();
  CHECK_THROWS_WITH(kernel.turn({{a.user_data, 0}, {b.user_data, 0}}), "no room for a cancel");
  UNSCOPED_INFO("its completion is out of the queue, and would never come again");
  CHECK(second.told.size() == 1);
  CHECK(queue.in_flight() == 0);
}

TEST_CASE("07 close() waits for a request that a cancel does not end") {
  for (const bool it_ends : {true, false}) {
    io_queue queue;
    manual_ring kernel{queue};
    noting operation;
    start_nop(queue, operation);
    (void)kernel.take();
    kernel.ring().ignore_cancels(it_ends ? 3 : 1'000'000);
    UNSCOPED_INFO(
        "as long as the request's final completion is missing, a thread of the kernel may read or "
        "write its buffer, which must not be given back");
    CHECK(queue.close() == it_ends);
    UNSCOPED_INFO("a closed queue delivers nothing");
    CHECK(operation.told.empty());
    kernel.ring().ignore_cancels(0);
  }
}

TEST_CASE("07 close() does not wait for requests that were never submitted") {
  io_queue queue;
  manual_ring kernel{queue};
  noting operation;
  start_nop(queue, operation);
  kernel.ring().ignore_cancels(1'000'000);
  UNSCOPED_INFO("the kernel has not taken this request, and never will");
  CHECK(queue.close());
}

TEST_CASE("07 a closed queue starts nothing") {
  io_queue queue;
  manual_ring kernel{queue};
  noting operation;
  course_test::noting_canceler canceler{queue};
  const uring::io_handle io{canceler};
  CHECK(queue.close());
  start_nop(queue, operation);
  UNSCOPED_INFO(
      "it returns true: the coroutine suspends, and stays so until its frame is destroyed");
  CHECK(io.start(operation, [](::io_uring_sqe& sqe) { ::io_uring_prep_nop(&sqe); }));
  UNSCOPED_INFO("an operation that is not in flight would stay in the list when it is gone");
  CHECK(canceler.in_flight.empty());
  CHECK(queue.in_flight() == 0);
  CHECK(kernel.waiting() == 0);
}
