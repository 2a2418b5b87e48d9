// SPDX-License-Identifier: MIT
#include "scripted_ring.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <utility>

namespace course_test {
namespace {

struct performance {
  script play;
  std::vector<::io_uring_sqe> submitted_early = {};  // by a full queue, since the last turn
  int silent_turns = 0;  // in a row: a program that gives up asks again and again
  int system_calls = 0;
  int next_failure = 0;
  int ignored_cancels = 0;
  std::vector<std::uint64_t> open = {};  // the requests without a final completion
  std::optional<std::chrono::milliseconds> last_limit = {};
};

std::optional<performance> on_stage;
std::optional<poller_pace> poller;

int submit_early(::io_uring& ring) {
  const std::vector<::io_uring_sqe> taken = take_prepared(ring);
  on_stage->submitted_early.insert(on_stage->submitted_early.end(), taken.begin(), taken.end());
  return static_cast<int>(taken.size());
}

int submit_to_poller(::io_uring& ring) {
  if (poller == poller_pace::behind) return static_cast<int>(::io_uring_sq_ready(&ring));
  (void)take_prepared(ring);
  return 0;
}

void complete(::io_uring& ring, const scripted_answer& answer) {
  if ((answer.flags & IORING_CQE_F_MORE) == 0) {
    const auto ended = std::ranges::find(on_stage->open, answer.user_data);
    if (ended != on_stage->open.end()) on_stage->open.erase(ended);
  }
  const unsigned tail = *ring.cq.ktail;
  if (tail - *ring.cq.khead == ring.cq.ring_entries) {
    throw std::logic_error{"the script answers more than the completion queue can hold"};
  }
  ring.cq.cqes[tail & (ring.cq.ring_entries - 1)] = {
      .user_data = answer.user_data, .res = answer.res, .flags = answer.flags};
  std::atomic_ref{*ring.cq.ktail}.store(tail + 1, std::memory_order_release);
}

int turn(::io_uring& ring) {
  const int submitted_now = submit_early(ring);
  const auto answers = on_stage->play(std::exchange(on_stage->submitted_early, {}));
  on_stage->silent_turns = answers.empty() ? on_stage->silent_turns + 1 : 0;
  if (on_stage->silent_turns > 1) {
    throw std::logic_error{"the loop waits for a completion that the script does not give"};
  }
  for (const scripted_answer& each : answers) complete(ring, each);
  const int failure = std::exchange(on_stage->next_failure, 0);
  return failure == 0 ? submitted_now : -failure;
}

int cancel_all(::io_uring& ring) {
  if (on_stage->ignored_cancels > 0) {
    --on_stage->ignored_cancels;
    return 0;
  }
  int count = 0;
  while (!on_stage->open.empty() && ::io_uring_cq_ready(&ring) < ring.cq.ring_entries) {
    complete(ring, {.user_data = on_stage->open.front(), .res = -ECANCELED});
    ++count;
  }
  return count;
}

std::optional<std::chrono::milliseconds> to_duration(const ::__kernel_timespec* limit) {
  if (limit == nullptr) return std::nullopt;
  return std::chrono::milliseconds{limit->tv_sec * 1000 + limit->tv_nsec / 1'000'000};
}

}  // namespace

std::vector<::io_uring_sqe> take_prepared(::io_uring& ring) {
  std::vector<::io_uring_sqe> taken;
  for (unsigned at = ring.sq.sqe_head; at != ring.sq.sqe_tail; ++at) {
    taken.push_back(ring.sq.sqes[at & (ring.sq.ring_entries - 1)]);
    const bool completes = (taken.back().flags & IOSQE_CQE_SKIP_SUCCESS) == 0;
    if (on_stage && completes) on_stage->open.push_back(taken.back().user_data);
  }
  ring.sq.sqe_head = ring.sq.sqe_tail;
  std::atomic_ref{*ring.sq.khead}.store(ring.sq.sqe_tail, std::memory_order_release);
  return taken;
}

scripted_ring::scripted_ring(script play) {
  on_stage = performance{.play = std::move(play)};
}

scripted_ring::~scripted_ring() {
  on_stage.reset();
}

void scripted_ring::fail_next_wait(int error) {
  on_stage->next_failure = error;
}

void scripted_ring::ignore_cancels(int calls) {
  on_stage->ignored_cancels = calls;
}

int scripted_ring::system_calls() const {
  return on_stage->system_calls;
}

std::optional<std::chrono::milliseconds> scripted_ring::last_limit() const {
  return on_stage->last_limit;
}

scripted_poller::scripted_poller(poller_pace pace) {
  poller = pace;
}

scripted_poller::~scripted_poller() {
  poller.reset();
}

}  // namespace course_test

extern "C" {
int real_submit(::io_uring*) asm("__real_io_uring_submit");
int our_submit(::io_uring*) asm("__wrap_io_uring_submit");
int real_wait(::io_uring*, ::io_uring_cqe**, unsigned, ::__kernel_timespec*,
              ::sigset_t*) asm("__real_io_uring_submit_and_wait_timeout");
int our_wait(::io_uring*, ::io_uring_cqe**, unsigned, ::__kernel_timespec*,
             ::sigset_t*) asm("__wrap_io_uring_submit_and_wait_timeout");
int real_poller_wait(::io_uring*) asm("__real___io_uring_sqring_wait");
int our_poller_wait(::io_uring*) asm("__wrap___io_uring_sqring_wait");
int real_cancel(::io_uring*,
                ::io_uring_sync_cancel_reg*) asm("__real_io_uring_register_sync_cancel");
int our_cancel(::io_uring*,
               ::io_uring_sync_cancel_reg*) asm("__wrap_io_uring_register_sync_cancel");
int real_get_events(::io_uring*) asm("__real_io_uring_get_events");
int our_get_events(::io_uring*) asm("__wrap_io_uring_get_events");
}

int our_submit(::io_uring* ring) {
  using namespace course_test;
  if (poller) return submit_to_poller(*ring);
  if (!on_stage) return real_submit(ring);
  ++on_stage->system_calls;
  return submit_early(*ring);
}

int our_wait(::io_uring* ring, ::io_uring_cqe** first, unsigned count, ::__kernel_timespec* limit,
             ::sigset_t* mask) {
  using namespace course_test;
  if (!on_stage) return real_wait(ring, first, count, limit, mask);
  ++on_stage->system_calls;
  on_stage->last_limit = to_duration(limit);
  return turn(*ring);
}

int our_cancel(::io_uring* ring, ::io_uring_sync_cancel_reg* which) {
  using namespace course_test;
  return on_stage ? cancel_all(*ring) : real_cancel(ring, which);
}

int our_get_events(::io_uring* ring) {
  return course_test::on_stage ? 0 : real_get_events(ring);
}

int our_poller_wait(::io_uring* ring) {
  using namespace course_test;
  if (!poller) return real_poller_wait(ring);
  (void)take_prepared(*ring);
  return 0;
}
