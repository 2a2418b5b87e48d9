// SPDX-License-Identifier: MIT
// Breaks one rule of a request, and should be stopped by an assert that names it. A program of its
// own: asserts are on in every build of it, and it dies.
#include <liburing.h>

#include <cstdint>
#include <iostream>
#include <string_view>
#include <vector>

#include "io_context.hpp"
#include "operations.hpp"
#include "scripted_ring.hpp"
#include "task.hpp"

namespace {

template <typename Prepare>
uring::task<> await_one(uring::io_request<Prepare> request) {
  (void)co_await request;
}

void awaits_a_request_of_many_completions() {
  const course_test::scripted_ring kernel{[](const std::vector<::io_uring_sqe>& submitted) {
    std::vector<course_test::scripted_answer> answers;
    answers.reserve(submitted.size());
    for (const ::io_uring_sqe& each : submitted) {
      answers.push_back({.user_data = each.user_data, .res = 5, .flags = IORING_CQE_F_MORE});
    }
    return answers;
  }};
  uring::io_context context;
  context.run(await_one(uring::nop_op(context)));
}

void asks_for_no_completion() {
  uring::io_context context;
  context.run(await_one(uring::with_flags(uring::nop_op(context), IOSQE_CQE_SKIP_SUCCESS)));
}

void sends_an_odd_word() {
  uring::io_context context;
  uring::io_context receiver;
  context.run(await_one(uring::msg_ring_op(context, receiver, 3, 0)));
}

void counts_an_error() {
  std::cout << uring::io_result{-ECONNRESET}.count();
}

struct misuse {
  std::string_view name;
  void (*commit)();
};

constexpr misuse misuses[] = {
    {"more-completions", awaits_a_request_of_many_completions},
    {"no-completion", asks_for_no_completion},
    {"odd-word", sends_an_odd_word},
    {"error-as-count", counts_an_error},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view wanted{argc == 2 ? argv[1] : ""};
  for (const misuse& each : misuses) {
    if (each.name != wanted) continue;
    each.commit();
    std::cout << "nothing stopped it\n";
    return 0;
  }
  std::cerr << "07-misuse takes the name of a misuse\n";
  return 2;
}
