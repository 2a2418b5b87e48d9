// SPDX-License-Identifier: MIT
// 12-owner: shows to which thread a ring belongs, and what the kernel answers to all others.
//
//   ./course run 12:owner
#include <liburing.h>

#include <cstdio>
#include <string>
#include <thread>

#include "addressed.hpp"
#include "countdown.hpp"
#include "errors.hpp"
#include "message.hpp"
#include "message_sender.hpp"
#include "program_main.hpp"
#include "ring_options.hpp"
#include "ring_worker.hpp"

namespace {

struct printed_message final : uring::message_receiver {
  void on_message(const uring::message& arrived) override {
    std::printf("%-42s %d\n", "a message has come to that thread:", arrived.value);
    has_come = true;
  }
  bool has_come = false;
};

// --8<-- [start:owner]
// The calling thread tries to submit what is in the queue.
void submit(const char* who, uring::worker& own) {
  const int submitted = ::io_uring_submit(&own.context().handle());
  const std::string said =
      submitted < 0 ? common::describe_errno(submitted) : std::to_string(submitted) + " submitted";
  std::printf("%-42s %s\n", who, said.c_str());
}

void show() {
  uring::worker own{{.mode = uring::ring_mode::defer}};
  own.context().start_unheard([](::io_uring_sqe& sqe) { ::io_uring_prep_nop(&sqe); });
  submit("still disabled; its maker submits:", own);

  uring::countdown enabled{1};
  uring::countdown tried{1};
  printed_message receiver;
  const std::jthread other{[&] {
    own.enable();
    enabled.arrive();
    tried.wait();
    submit("the thread that has enabled it submits:", own);
    while (!receiver.has_come) own.context().turn();
  }};
  enabled.wait();
  submit("enabled by another; its maker submits:", own);
  tried.arrive();
  uring::message_sender{}.send(own.context(), receiver, 42);
}
// --8<-- [end:owner]

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 12: to whom a ring belongs."};
  return common::program_main(argc, argv, flags, show);
}
