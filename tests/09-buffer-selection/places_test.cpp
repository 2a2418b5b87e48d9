// SPDX-License-Identifier: MIT
// Each buffer is in exactly one place, at every step: with the kernel, or lent to one coroutine.
// The kernel is a script that answers at random, with everything that the real one may say.
#include <liburing.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "buffer_pool.hpp"
#include "cancel_source.hpp"
#include "io_context.hpp"
#include "pool_echo.hpp"
#include "scope.hpp"
#include "scripted_ring.hpp"

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
constexpr int turns = 400;

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

// Answers a request as a kernel might.
class random_kernel {
 public:
  random_kernel(group_of_buffers& group, unsigned seed) : group_{group}, random_{seed} {}

  [[nodiscard]] scripted_answer answer(const ::io_uring_sqe& sqe) {
    switch (sqe.opcode) {
      case IORING_OP_RECV:
        return (sqe.flags & IOSQE_BUFFER_SELECT) != 0 ? selected(sqe) : plain_recv(sqe);
      case IORING_OP_SEND:
        return sent(sqe);
      default:  // a NOP, a cancel
        return {sqe.user_data, 0};
    }
  }

  [[nodiscard]] bool one_in(int sides) {
    return std::uniform_int_distribution<int>{1, sides}(random_) == 1;
  }

 private:
  // Bytes in a buffer; a canceled or failed recv, with a buffer or without; EOF; no buffer left.
  scripted_answer selected(const ::io_uring_sqe& sqe) {
    if (one_in(20)) return {sqe.user_data, 0};
    if (one_in(20)) return {sqe.user_data, -ECONNRESET};
    if (one_in(10)) return {sqe.user_data, -EINTR};
    if (group_.at_home.empty()) return {sqe.user_data, -ENOBUFS};
    auto picked = group_.at_home.begin();
    std::advance(picked,
                 std::uniform_int_distribution<std::size_t>{0, group_.at_home.size() - 1}(random_));
    const buffer_id id = *picked;
    group_.at_home.erase(picked);
    return {sqe.user_data, one_in(15) ? -EINTR : 40, in_buffer(id)};
  }

  scripted_answer plain_recv(const ::io_uring_sqe& sqe) {
    return {sqe.user_data, one_in(4) ? -EAGAIN : 40};
  }

  scripted_answer sent(const ::io_uring_sqe& sqe) {
    const bool at_once = (sqe.msg_flags & MSG_DONTWAIT) != 0;
    if (at_once && one_in(3)) return {sqe.user_data, -EAGAIN};
    if (one_in(30)) return {sqe.user_data, -EPIPE};
    const auto all = static_cast<std::int32_t>(sqe.len);
    return {sqe.user_data, one_in(3) ? std::max(1, all / 2) : all};
  }

  group_of_buffers& group_;
  std::mt19937 random_;
};

task<> converse(uring::pool_echo& echo, int socket, cancel_source& until) {
  while (!until.is_canceled()) co_await echo.run(socket);  // the next client on this number
}

task<> spawn_clients(uring::scope& all, uring::pool_echo& echo, cancel_source& until) {
  for (int i = 0; i < clients; ++i) all.spawn(converse(echo, 100 + i, until));
  co_return;
}

task<> serve(io_context& context, buffer_pool& pool, cancel_source*& stop) {
  uring::scope all{context};
  stop = &all.source();
  uring::pool_echo echo{pool, all.source(), all.source()};
  co_await all.run(spawn_clients(all, echo, all.source()));
}

}  // namespace

TEST_CASE("09 each buffer is in exactly one place at every step", "[09]") {
  const unsigned seed = GENERATE(range(1U, 21U));
  const auto count = static_cast<std::size_t>(1 + seed % 5);
  INFO("seed " << seed << ", " << count << " buffers, " << clients << " clients");
  group_of_buffers group;
  random_kernel kernel{group, seed};
  std::deque<::io_uring_sqe> waiting;
  cancel_source* stop = nullptr;
  buffer_pool* pool = nullptr;
  int turn = 0;
  int lost = 0;
  const scripted_ring script{[&](const std::vector<::io_uring_sqe>& submitted) {
    waiting.insert(waiting.end(), submitted.begin(), submitted.end());
    if (pool->lent() + group.at_home.size() != count) ++lost;
    if (++turn == turns) stop->cancel();
    std::vector<scripted_answer> answers;
    // Any of those that wait, in any order; after the stop all of them.
    for (std::size_t i = 0; i < waiting.size() && answers.size() < 8;) {
      if (turn < turns && !kernel.one_in(3) && i + 1 < waiting.size()) {
        ++i;
        continue;
      }
      answers.push_back(turn > turns ? scripted_answer{waiting[i].user_data, -ECANCELED}
                                     : kernel.answer(waiting[i]));
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return answers;
  }};
  io_context context;
  buffer_pool buffers{context, group, {count, buffer_bytes}};
  pool = &buffers;
  context.run(serve(context, buffers, stop));
  UNSCOPED_INFO("a buffer was given to the kernel while it was there already");
  CHECK(group.given_twice.empty());
  UNSCOPED_INFO("a buffer was neither with the kernel nor lent, or it was both");
  CHECK(lost == 0);
  UNSCOPED_INFO("at the end every buffer is home");
  CHECK(group.at_home.size() == count);
  CHECK(buffers.lent() == 0);
  CHECK(turn > turns);
}
