// SPDX-License-Identifier: MIT
// Tasks 08.3 and 08.4: a request, its deadline and its cancel are three requests with as many
// completions. Here they come in every order and with every meaning, even the rare ones. The frame
// goes on after the last completion of its own requests, whatever the cancel's is and whenever it
// comes.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cancel_source.hpp"
#include "counted.hpp"
#include "deadline.hpp"
#include "io_context.hpp"
#include "operations.hpp"
#include "scripted_ring.hpp"
#include "task.hpp"
#include "when_all.hpp"

using namespace std::chrono_literals;
using course_test::counted;
using course_test::scripted_answer;
using course_test::scripted_ring;
using course_test::socket_number;
using uring::cancel_source;
using uring::io_context;
using uring::io_result;
using uring::task;

namespace {

constexpr std::uint8_t request = IORING_OP_RECV;
constexpr std::uint8_t deadline = IORING_OP_LINK_TIMEOUT;
constexpr std::uint8_t cancel = IORING_OP_ASYNC_CANCEL;

struct meaning {
  std::int32_t request;
  std::int32_t deadline;
  std::int32_t cancel;
  std::int32_t expected;  // of co_await: a count, or -errno
  const char* what;
};

const std::vector<meaning> meanings{
    {-ECANCELED, -ECANCELED, 0, -ECANCELED, "the cancel found it"},
    {5, -ECANCELED, -ENOENT, 5, "it had completed before"},
    {5, -ECANCELED, -EALREADY, 5, "it was completing just then"},
    {5, -ETIME, -ENOENT, 5, "the deadline passed, but it had completed"},
    {5, -ENOENT, -ENOENT, 5, "the deadline fired and did not find it"},
    {0, -ECANCELED, -ENOENT, 0, "EOF came first"},
    {0, -ETIME, -ENOENT, 0, "the deadline passed, but EOF had come"},
    {-ECONNRESET, -ECANCELED, -ENOENT, -ECONNRESET, "it failed by itself"},
    {-ECONNRESET, -ETIME, -ENOENT, -ECONNRESET, "it failed by itself as the deadline passed"},
    {-ECONNRESET, -ENOENT, -ENOENT, -ECONNRESET, "it had failed before the deadline fired"},
    {-ECANCELED, -ETIME, -ENOENT, -ETIME, "the deadline ended it"},
    {-ECANCELED, -EALREADY, -EALREADY, -ETIME, "the deadline ended it as a worker began"},
    {-ECANCELED, -ENOENT, -ENOENT, -ETIME, "the deadline fired while the request was ending"},
    {-EINTR, -EALREADY, -EALREADY, -ETIME, "a worker was interrupted by the deadline"},
    {-EINTR, -ETIME, -ENOENT, -ETIME, "the deadline ended it in the middle of its work"},
    {-EINTR, -ECANCELED, -EALREADY, -ECANCELED, "a worker was interrupted by the cancel"},
};

// What the frame under test has seen, and the script around it.
struct stage {
  bool has_ended = false;
  bool too_early = false;  // one of its own requests had not completed
  bool too_late = false;   // it waited for the cancel's completion
  int result = 0;
  std::string text;
};

task<> receive(bool has_deadline, cancel_source& source, stage& seen, counted) {
  std::array<char, 16> buffer{};
  const std::span<std::byte> into = std::as_writable_bytes(std::span{buffer});
  io_result received{0};
  if (has_deadline) {
    received = co_await uring::with_deadline(uring::recv_op(source, socket_number, into), 1s);
  } else {
    received = co_await uring::recv_op(source, socket_number, into);
  }
  seen.has_ended = true;
  seen.result = received ? static_cast<int>(received.count()) : -received.error();
  if (received) seen.text.assign(buffer.data(), received.count());
}

task<> cancel_now(cancel_source& source) {
  source.cancel();
  co_return;
}

// Keeps the loop turning until the last completion has come.
task<> wait_for_the_script(io_context& context) {
  (void)co_await uring::nop_op(context);
}

// Takes what was submitted, which then completes in the order given: one a turn, or all in one. The
// NOP comes last.
class completes_in_order {
 public:
  completes_in_order(std::vector<std::uint8_t> order, meaning how, bool together, stage& seen)
      : order_{std::move(order)}, how_{how}, together_{together}, seen_{seen} {}

  std::vector<scripted_answer> operator()(const std::vector<::io_uring_sqe>& submitted) {
    for (const ::io_uring_sqe& each : submitted) {
      refuse_a_second_cancel(each);
      known_[each.opcode] = each;
    }
    require_the_cancel();
    look_at_the_frame();
    if (seen_.too_early) next_ = order_.size();  // the kernel would write to what is gone
    if (is_over_) return end_of_the_timer();
    std::vector<scripted_answer> now;
    while (next_ < order_.size() && known_.count(order_[next_]) > 0) {
      now.push_back(answer(order_[next_++]));
      if (!together_) return now;
    }
    if (next_ == order_.size()) now.push_back(let_the_loop_end());
    return now;
  }

 private:
  void refuse_a_second_cancel(const ::io_uring_sqe& submitted) const {
    const auto timer = known_.find(deadline);
    if (submitted.opcode != cancel || timer == known_.end()) return;
    if (submitted.addr != timer->second.user_data) return;
    throw std::runtime_error{
        "source.cancel() cancels the timeout, too, although it ends with its request: start the "
        "timeout by queue.start(), because only the request belongs to the source"};
  }

  // The NOP was started last, so what is not known by then does not come.
  void require_the_cancel() const {
    if (std::ranges::count(order_, cancel) == 0 || known_.count(cancel) > 0) return;
    if (known_.count(IORING_OP_NOP) == 0) return;
    std::string what = "source.cancel() submitted no cancel for the request";
    if (known_.count(deadline) > 0) {
      what +=
          ": start that by request_.io.start(), because the queue's own start() tells no source";
    }
    throw std::runtime_error{what};
  }

  // Its own requests are all but the cancel.
  void look_at_the_frame() {
    const bool own_have_completed =
        std::none_of(order_.begin() + static_cast<std::ptrdiff_t>(next_), order_.end(),
                     [](std::uint8_t each) { return each != cancel; });
    if (seen_.has_ended && !own_have_completed) seen_.too_early = true;
    if (!seen_.has_ended && own_have_completed) seen_.too_late = true;
  }

  scripted_answer let_the_loop_end() {
    is_over_ = true;
    return {known_.at(IORING_OP_NOP).user_data, 0};
  }

  // The one that a cancel's -EALREADY starts, if the target had not ended yet.
  std::vector<scripted_answer> end_of_the_timer() {
    const auto timer = known_.extract(IORING_OP_TIMEOUT);
    if (timer.empty()) return {};
    return {{timer.mapped().user_data, -ETIME}};
  }

  scripted_answer answer(std::uint8_t opcode) {
    const ::io_uring_sqe& sqe = known_.at(opcode);
    const std::map<std::uint8_t, std::int32_t> results{
        {request, how_.request}, {deadline, how_.deadline}, {cancel, how_.cancel}};
    const std::int32_t res = results.at(opcode);
    // The kernel's right until the last moment: into the frame's own buffer.
    if (opcode == request && res > 0) {
      std::memcpy(reinterpret_cast<void*>(sqe.addr), "hello", static_cast<std::size_t>(res));
    }
    return {sqe.user_data, res};
  }

  std::vector<std::uint8_t> order_;
  meaning how_;
  bool together_;
  stage& seen_;
  std::map<std::uint8_t, ::io_uring_sqe> known_;
  std::size_t next_ = 0;
  bool is_over_ = false;
};

void play(const std::vector<std::uint8_t>& order, const meaning& how, bool together,
          bool is_canceled) {
  std::string words;
  for (const std::uint8_t each : order) {
    words += each == request ? " request" : each == deadline ? " deadline" : " cancel";
  }
  INFO(how.what << "; completions in this order:" << words << (together ? ", in one turn" : ""));
  stage seen;
  const scripted_ring kernel{completes_in_order{order, how, together, seen}};
  {
    io_context context;
    cancel_source source{context};
    cancel_source unused{context};
    const bool has_deadline = std::ranges::count(order, deadline) > 0;
    std::vector<task<>> tasks;
    tasks.push_back(receive(has_deadline, source, seen, {}));
    if (is_canceled) tasks.push_back(cancel_now(source));
    tasks.push_back(wait_for_the_script(context));
    context.run(uring::when_all(unused, std::move(tasks)));
    UNSCOPED_INFO(
        "a completion was still to come, and the frame went on: the kernel has addresses in it");
    REQUIRE_FALSE(seen.too_early);
    if (context.in_flight() > 0) context.turn();  // see end_of_the_timer()
    CHECK(context.in_flight() == 0);
  }
  UNSCOPED_INFO("its own requests had completed, and the frame waited for the cancel's completion");
  CHECK_FALSE(seen.too_late);
  UNSCOPED_INFO(
      "the request's own result counts; -ECANCELED and -EINTR ask who has ended it: the deadline, "
      "unless the timeout's own result is -ECANCELED. -ETIME is not the only result of one that "
      "has fired");
  if (how.expected == -ECONNRESET) {
    UNSCOPED_INFO("ECONNRESET is the request's own error: no deadline turns it into ETIME");
  }
  CHECK(seen.result == how.expected);
  if (how.expected > 0) CHECK(seen.text == "hello");
  CHECK(counted::live() == 0);
}

}  // namespace

TEST_CASE("08.3 request and cancel complete in both orders", "[08.3]") {
  for (const meaning& how : meanings) {
    if (how.expected == -ETIME) continue;
    for (const bool together : {false, true}) {
      play({request, cancel}, how, together, true);
      play({cancel, request}, how, together, true);
    }
  }
}

TEST_CASE("08.4 request and deadline complete in both orders", "[08.4]") {
  for (const meaning& how : meanings) {
    if (how.expected == -ECANCELED) continue;
    for (const bool together : {false, true}) {
      play({request, deadline}, how, together, false);
      play({deadline, request}, how, together, false);
    }
  }
}

TEST_CASE("08.4 request, deadline and cancel complete in all six orders", "[08.4]") {
  for (const meaning& how : meanings) {
    std::vector<std::uint8_t> order{request, deadline, cancel};
    std::ranges::sort(order);
    do {
      for (const bool together : {false, true}) play(order, how, together, true);
    } while (std::ranges::next_permutation(order).found);
  }
}

TEST_CASE("08 a worker that was interrupted without a cancel gives EINTR", "[08]") {
  INFO("nobody ended it: -EINTR is passing, and the caller tries again");
  play({request}, {-EINTR, 0, 0, -EINTR, "interrupted by itself"}, false, false);
  const meaning in_time{-EINTR, -ECANCELED, 0, -EINTR, "interrupted before the deadline"};
  play({request, deadline}, in_time, false, false);
  play({deadline, request}, in_time, false, false);
}

TEST_CASE("08.4 the request is linked, and its timespec lives where the request does", "[08.4]") {
  stage seen;
  std::vector<::io_uring_sqe> submitted;
  std::int64_t seconds = 0;
  const scripted_ring kernel{[&](const std::vector<::io_uring_sqe>& now) {
    submitted.insert(submitted.end(), now.begin(), now.end());
    std::vector<scripted_answer> answers;
    for (const ::io_uring_sqe& each : now) {
      if (each.opcode == deadline) {  // now is when the kernel reads it
        seconds = reinterpret_cast<const ::__kernel_timespec*>(each.addr)->tv_sec;
      }
      answers.push_back({each.user_data, each.opcode == request ? 5 : -ECANCELED});
    }
    return answers;
  }};
  io_context context;
  cancel_source source{context};
  context.run(receive(true, source, seen, {}));
  REQUIRE(submitted.size() == 2);
  UNSCOPED_INFO("the request first, then its timeout: a link reaches to the next entry");
  CHECK(submitted[0].opcode == request);
  UNSCOPED_INFO(
      "without IOSQE_IO_LINK at the request the timeout has no request to end. prepare(sqe) sets "
      "all flags anew: add yours after it");
  CHECK((submitted[0].flags & IOSQE_IO_LINK) != 0);
  UNSCOPED_INFO("the timeout is the last of the chain");
  CHECK((submitted[1].flags & IOSQE_IO_LINK) == 0);
  UNSCOPED_INFO("each has a completion of its own: two parts have two addresses");
  CHECK(submitted[0].user_data != submitted[1].user_data);
  UNSCOPED_INFO(
      "the kernel reads the timespec at the submission, after the function that prepared it has "
      "returned: it must be a member, not a local variable");
  const std::uint64_t part = submitted[1].user_data;
  const std::uint64_t limit = submitted[1].addr;
  CHECK((limit > part ? limit - part : part - limit) < 1024);
  CHECK(seconds == 1);
}

TEST_CASE("08.4 what a request points at lives until the kernel has read it", "[08.4]") {
  struct check {
    static task<> wait(io_context& context) {
      (void)co_await uring::with_deadline(uring::timeout_op(context, 7s), 9s);
    }
  };
  std::uint64_t distance = ~0ULL;
  std::int64_t seconds = 0;
  const scripted_ring kernel{[&](const std::vector<::io_uring_sqe>& now) {
    std::vector<scripted_answer> answers;
    for (const ::io_uring_sqe& each : now) {
      if (each.opcode == IORING_OP_TIMEOUT) {  // its prepare() holds the timespec
        distance = std::max(each.addr, each.user_data) - std::min(each.addr, each.user_data);
        if (distance < 1024) {
          seconds = reinterpret_cast<const ::__kernel_timespec*>(each.addr)->tv_sec;
        }
      }
      answers.push_back({each.user_data, each.opcode == deadline ? -ECANCELED : -ETIME});
    }
    return answers;
  }};
  io_context context;
  context.run(check::wait(context));
  UNSCOPED_INFO(
      "the request points into a copy of request_.prepare, which is gone when the kernel reads it: "
      "call request_.prepare itself, and no copy (with_flags() makes one)");
  CHECK(distance < 1024);
  CHECK(seconds == 7);
}

TEST_CASE("08.4 after close() the coroutine stays suspended", "[08.4]") {
  uring::io_queue queue;
  REQUIRE(queue.close());
  std::array<std::byte, 8> buffer;
  auto late = uring::with_deadline(uring::recv_op(queue, socket_number, buffer), 1s);
  UNSCOPED_INFO(
      "frames are being destroyed, and this one went on. A closed queue starts neither the request "
      "nor the timeout, and start_both() still returns true: only a refusal by request_.io.start() "
      "makes it false");
  CHECK(late.await_suspend(std::noop_coroutine()));
}

TEST_CASE("08.4 a request keeps the flags that it had", "[08.4]") {
  struct check {
    static task<> receive_fixed(io_context& context) {
      std::array<std::byte, 8> buffer;
      (void)co_await uring::with_deadline(
          uring::with_flags(uring::recv_op(context, 0, buffer), IOSQE_FIXED_FILE), 1s);
    }
  };
  unsigned flags = 0;
  const scripted_ring kernel{[&](const std::vector<::io_uring_sqe>& now) {
    std::vector<scripted_answer> answers;
    for (const ::io_uring_sqe& each : now) {
      if (each.opcode == request) flags = each.flags;
      answers.push_back({each.user_data, each.opcode == request ? 5 : -ECANCELED});
    }
    return answers;
  }};
  io_context context;
  context.run(check::receive_fixed(context));
  UNSCOPED_INFO("prepare(sqe) sets all flags anew: add IOSQE_IO_LINK after it");
  CHECK((flags & IOSQE_IO_LINK) != 0);
  UNSCOPED_INFO(
      "the link replaced the flag that prepare() had set, IOSQE_FIXED_FILE, and the request reads "
      "from descriptor 0: add the link with |=");
  CHECK((flags & IOSQE_FIXED_FILE) != 0);
}

TEST_CASE("08.4 a source that was canceled before starts neither the request nor its timeout",
          "[08.4]") {
  stage seen;
  std::size_t submitted = 0;
  const scripted_ring kernel{[&](const std::vector<::io_uring_sqe>& now) {
    submitted += now.size();
    std::vector<scripted_answer> answers;
    answers.reserve(now.size());
    for (const ::io_uring_sqe& each : now) answers.push_back({each.user_data, -ECANCELED});
    return answers;
  }};
  io_context context;
  cancel_source source{context};
  source.cancel();
  context.run(receive(true, source, seen, {}));
  CHECK(seen.result == -ECANCELED);
  UNSCOPED_INFO("io.start() gave false: the request was not started, and a timeout has no target");
  REQUIRE(context.in_flight() == 0);
  CHECK(submitted == 0);
  CHECK(counted::live() == 0);
}
