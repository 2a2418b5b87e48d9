// SPDX-License-Identifier: MIT
// With requests that take buffers by themselves, each buffer still is in exactly one place, at
// every step; and of each client at most one recv is in flight. The kernel is a script that answers
// at random, with everything that the real one may say.
#include <liburing.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "buffer_pool.hpp"
#include "cancel_source.hpp"
#include "io_context.hpp"
#include "scope.hpp"
#include "scripted_ring.hpp"
#include "stream_echo.hpp"

using course_test::cqe_more;
using course_test::in_buffer;
using course_test::scripted_answer;
using course_test::scripted_ring;
using uring::buffer_id;
using uring::buffer_pool;
using uring::cancel_source;
using uring::io_context;
using uring::task;

namespace {

constexpr std::size_t buffer_bytes = 64;
constexpr int clients = 12;
constexpr int turns = 600;

// What the kernel has, and what went wrong with it.
class group_of_buffers final : public uring::buffer_supply {
 public:
  [[nodiscard]] uring::buffer_group group() const noexcept override { return 0; }
  void give(buffer_id id, std::span<std::byte>) override {
    if (!at_home.insert(id).second) given_twice.push_back(id);
  }

  std::set<buffer_id> at_home;
  std::vector<buffer_id> given_twice;
};

// A kernel that has accepted the requests of some clients, and ends them as it likes.
class random_kernel {
 public:
  random_kernel(group_of_buffers& group, unsigned seed) : group_{group}, random_{seed} {}

  void accept(const ::io_uring_sqe& sqe) {
    if (sqe.opcode == IORING_OP_ASYNC_CANCEL) return cancel(sqe);
    const bool receives = sqe.opcode == IORING_OP_RECV;
    if (receives && !receiving_.insert(sqe.fd).second) ++two_recvs;
    in_flight_.push_back({sqe.opcode, sqe.fd, sqe.user_data, sqe.msg_flags,
                          (sqe.ioprio & IORING_RECV_MULTISHOT) != 0,
                          (sqe.flags & IOSQE_BUFFER_SELECT) != 0, sqe.len, false});
  }

  // What completes in this turn: some requests, some of them several times.
  [[nodiscard]] std::vector<scripted_answer> complete() {
    std::vector<scripted_answer> answers = std::exchange(now_, {});
    for (std::size_t i = 0; i < in_flight_.size() && answers.size() < 12;) {
      if (!in_flight_[i].must_end && one_in(2)) {
        ++i;
        continue;
      }
      answers.push_back(answer(in_flight_[i]));
      if ((answers.back().flags & cqe_more) == 0) forget(i);
    }
    if (answers.empty() && !in_flight_.empty()) {
      answers.push_back(answer(in_flight_.front()));
      if ((answers.back().flags & cqe_more) == 0) forget(0);
    }
    return answers;
  }

  int two_recvs = 0;  // of one client, in flight at the same time

 private:
  struct request {
    std::uint8_t opcode;
    int fd;
    std::uint64_t user_data;
    std::uint32_t flags;
    bool multishot;
    bool selects;
    std::uint32_t bytes;
    bool must_end;
  };

  [[nodiscard]] bool one_in(int sides) {
    return std::uniform_int_distribution<int>{1, sides}(random_) == 1;
  }

  void forget(std::size_t index) {
    if (in_flight_[index].opcode == IORING_OP_RECV) receiving_.erase(in_flight_[index].fd);
    in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void cancel(const ::io_uring_sqe& sqe) {
    const auto target = std::ranges::find(in_flight_, sqe.addr, &request::user_data);
    now_.push_back({sqe.user_data, target == in_flight_.end() ? -ENOENT : 0});
    if (target != in_flight_.end()) target->must_end = true;
  }

  scripted_answer answer(const request& of) {
    if (of.opcode == IORING_OP_RECV) return of.selects ? selected(of) : at_once(of);
    if (of.opcode == IORING_OP_SEND) return sent(of);
    return {of.user_data, 0};
  }

  // Bytes in a buffer, with more to come or not; an error, with a buffer or without; EOF; none
  // left.
  scripted_answer selected(const request& of) {
    if (of.must_end && one_in(2)) return {of.user_data, -ECANCELED};
    if (one_in(25)) return {of.user_data, 0};
    if (one_in(25)) return {of.user_data, -ECONNRESET};
    if (one_in(25)) return {of.user_data, -EINTR, one_in(2) ? cqe_more : 0};
    const bool waits = (of.flags & MSG_DONTWAIT) == 0;
    if (!waits && one_in(4)) return {of.user_data, -EAGAIN};
    if (group_.at_home.empty()) return {of.user_data, -ENOBUFS};
    const buffer_id id = *group_.at_home.begin();
    group_.at_home.erase(group_.at_home.begin());
    const std::uint32_t goes_on = of.multishot && !one_in(6) ? cqe_more : 0;
    if (one_in(20)) return {of.user_data, -ECANCELED, in_buffer(id)};
    return {of.user_data, 40, in_buffer(id) | goes_on};
  }

  scripted_answer at_once(const request& of) { return {of.user_data, one_in(4) ? -EAGAIN : 40}; }

  scripted_answer sent(const request& of) {
    const bool waits = (of.flags & MSG_DONTWAIT) == 0;
    if (!waits && one_in(3)) return {of.user_data, -EAGAIN};
    if (one_in(30)) return {of.user_data, -EPIPE};
    const auto all = static_cast<std::int32_t>(of.bytes);
    return {of.user_data, one_in(3) ? std::max(1, all / 2) : all};
  }

  group_of_buffers& group_;
  std::mt19937 random_;
  std::vector<request> in_flight_;
  std::set<int> receiving_;
  std::vector<scripted_answer> now_;
};

task<> converse(uring::stream_echo& echo, int socket, cancel_source& until) {
  while (!until.is_canceled()) co_await echo.run(socket);  // the next client on this number
}

task<> spawn_clients(uring::scope& all, uring::stream_echo& echo, cancel_source& until) {
  for (int i = 0; i < clients; ++i) all.spawn(converse(echo, 100 + i, until));
  co_return;
}

task<> serve(io_context& context, buffer_pool& pool, cancel_source*& stop) {
  uring::scope all{context};
  stop = &all.source();
  uring::stream_echo echo{pool, all.source(), all.source()};
  co_await all.run(spawn_clients(all, echo, all.source()));
}

}  // namespace

TEST_CASE("10 each buffer is in exactly one place at every step", "[10]") {
  const unsigned seed = GENERATE(range(1U, 21U));
  const auto count = static_cast<std::size_t>(1 + seed % 5);
  INFO("seed " << seed << ", " << count << " buffers, " << clients << " clients");
  group_of_buffers group;
  random_kernel kernel{group, seed};
  cancel_source* stop = nullptr;
  buffer_pool* pool = nullptr;
  int turn = 0;
  int lost = 0;
  const scripted_ring script{[&](const std::vector<::io_uring_sqe>& submitted) {
    if (pool->lent() + group.at_home.size() != count) ++lost;
    for (const ::io_uring_sqe& each : submitted) kernel.accept(each);
    if (++turn == turns) stop->cancel();
    return kernel.complete();
  }};
  io_context context;
  buffer_pool buffers{context, group, {count, buffer_bytes}};
  pool = &buffers;
  context.run(serve(context, buffers, stop));
  UNSCOPED_INFO("two requests received from one socket at the same time");
  CHECK(kernel.two_recvs == 0);
  UNSCOPED_INFO("a buffer was given to the kernel while it was there already");
  CHECK(group.given_twice.empty());
  UNSCOPED_INFO("a buffer was neither with the kernel nor lent, or it was both");
  CHECK(lost == 0);
  UNSCOPED_INFO("at the end every buffer is home");
  CHECK(group.at_home.size() == count);
  CHECK(buffers.lent() == 0);
  CHECK(turn > turns);
}
