// SPDX-License-Identifier: MIT
// 07-ping_pong: two tasks on one thread, and a ball that goes through two pipes.
//
//   ./course run 07:ping_pong
//   ./course run 07:ping_pong -- --rounds 1000
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <span>
#include <stdexcept>

#include "errors.hpp"
#include "io_context.hpp"
#include "program_main.hpp"
#include "transfers.hpp"
#include "unique_fd.hpp"

namespace {

using uring::io_context;
using uring::io_result;
using uring::task;

struct pipe_ends {
  common::unique_fd read;
  common::unique_fd write;
};

pipe_ends make_pipe() {
  std::array<int, 2> fds{};
  common::check(::pipe2(fds.data(), O_CLOEXEC), "pipe2");
  return {common::unique_fd{fds[0]}, common::unique_fd{fds[1]}};
}

struct score {
  std::int64_t pings = 0;
  std::int64_t pongs = 0;
};

// The ball is the number of the round. Eight bytes go through a pipe whole or not at all.
task<bool> catch_ball(io_context& context, int from, std::int64_t& ball) {
  const io_result caught =
      co_await uring::read_op(context, from, std::as_writable_bytes(std::span{&ball, 1}));
  co_return caught.or_throw("read") == sizeof ball;  // 0 is EOF: no ball will come any more
}

// Serves the ball, and closes its pipe after the last round. At EOF the other task ends, too.
task<> ping(io_context& context, common::unique_fd in, common::unique_fd out, std::int64_t rounds,
            score& count) {
  for (std::int64_t round = 0; round < rounds; ++round) {
    std::int64_t ball = round;
    co_await uring::write_all(context, out.get(), std::as_bytes(std::span{&ball, 1}));
    const bool returned = co_await catch_ball(context, in.get(), ball);
    if (!returned || ball != round) throw std::runtime_error{"the ball was lost"};
    ++count.pings;
  }
}

// Returns each ball that comes, until `ping` has closed its end of the pipe.
task<> pong(io_context& context, common::unique_fd in, common::unique_fd out, score& count) {
  std::int64_t ball = 0;
  while (true) {
    const bool caught = co_await catch_ball(context, in.get(), ball);
    if (!caught) co_return;
    co_await uring::write_all(context, out.get(), std::as_bytes(std::span{&ball, 1}));
    ++count.pongs;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t rounds = 20;
  common::flag_set flags{"Chapter 07: ping-pong between two tasks, over two pipes."};
  flags.add("--rounds", rounds, 0, 1'000'000'000, "How often the ball goes there and back");
  return common::program_main(argc, argv, flags, [&] {
    score count;
    io_context context;
    pipe_ends there = make_pipe();
    pipe_ends back = make_pipe();
    context.spawn(pong(context, std::move(there.read), std::move(back.write), count));
    context.spawn(ping(context, std::move(back.read), std::move(there.write), rounds, count));
    context.run();
    std::cout << count.pings << " pings, " << count.pongs << " pongs\n";
    if (count.pongs != rounds) throw std::runtime_error{"a round is missing"};
  });
}
