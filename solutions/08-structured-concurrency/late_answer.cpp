// SPDX-License-Identifier: MIT
// 08-late_answer: asks two servers, and the first answer counts. Where does the second answer go?
//
//   ./course run 08:late_answer --solution
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

#include "cancel_source.hpp"
#include "io_context.hpp"
#include "local_pair.hpp"
#include "operations.hpp"
#include "program_main.hpp"
#include "promise.hpp"
#include "when_any.hpp"

namespace {

using uring::cancel_source;
using uring::io_context;
using uring::io_result;
using uring::task;

// Two sheets of paper: buffers for the answers. Every question uses the same two.
using sheet = std::array<char, 8>;
using sheets = std::array<sheet, 2>;

struct two_servers {
  common::local_pair quick;
  common::local_pair slow;
};

// --8<-- [start:naive]
struct first_answer {
  bool is_there = false;
  uring::promise<> came;
};

task<> note_answer(io_context& context, int socket, sheet& paper, first_answer& first) {
  const io_result received =
      co_await uring::recv_op(context, socket, std::as_writable_bytes(std::span{paper}));
  if (!received || first.is_there) co_return;
  first.is_there = true;
  first.came.resolve();
}

// Asks both servers, and goes on at the first answer. No code joins the other task: it still waits.
task<> ask_naively(io_context& context, const two_servers& servers, sheets& paper,
                   first_answer& first) {
  context.spawn(note_answer(context, servers.quick.ours.get(), paper[0], first));
  context.spawn(note_answer(context, servers.slow.ours.get(), paper[1], first));
  co_await first.came;
}
// --8<-- [end:naive]

// --8<-- [start:joined]
task<> receive(uring::io_handle io, int socket, sheet& paper) {
  const io_result received =
      co_await uring::recv_op(io, socket, std::as_writable_bytes(std::span{paper}));
  if (received.error() != ECANCELED) received.or_throw("recv");
}

task<> ask(io_context& context, const two_servers& servers, sheets& paper) {
  cancel_source losers{context};
  co_await uring::when_any(losers, receive(losers, servers.quick.ours.get(), paper[0]),
                           receive(losers, servers.slow.ours.get(), paper[1]));
}
// --8<-- [end:joined]

std::string text_of(const sheet& paper) {
  return {paper.data(), paper.size()};
}

// Asks the second question, on clean sheets. Only the late answer to the first question comes.
task<> second_question(io_context& context, const two_servers& servers, sheets& paper) {
  paper = {};
  for (sheet& each : paper) each.fill('.');
  servers.slow.say("TOO LATE");
  for (int turns = 0; turns < 10; ++turns) {
    const io_result turned = co_await uring::nop_op(context);
    turned.or_throw("nop");
  }
  std::printf("  second question, nobody has answered: \"%s\" and \"%s\"\n",
              text_of(paper[0]).c_str(), text_of(paper[1]).c_str());
}

task<> naive(io_context& context) {
  sheets paper{};
  const two_servers servers;
  first_answer first;
  servers.quick.say("in time.");
  co_await ask_naively(context, servers, paper, first);
  std::printf("forgets the loser\n  first question: \"%s\"\n", text_of(paper[0]).c_str());
  co_await second_question(context, servers, paper);
}

task<> joined(io_context& context) {
  sheets paper{};
  const two_servers servers;
  servers.quick.say("in time.");
  co_await ask(context, servers, paper);
  std::printf("cancels and joins it\n  first question: \"%s\"\n", text_of(paper[0]).c_str());
  co_await second_question(context, servers, paper);
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 08: a late answer, and where it is written."};
  return common::program_main(argc, argv, flags, [] {
    io_context context;
    context.run(naive(context));
    context.run(joined(context));
  });
}
