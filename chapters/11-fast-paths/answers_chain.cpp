// SPDX-License-Identifier: MIT
// What a chain by linked() answers, in a queue of four places of which some are taken.
#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <tuple>

#include "answers.hpp"
#include "answers_file.hpp"
#include "errors.hpp"
#include "file_operations.hpp"
#include "io_context.hpp"
#include "linked.hpp"
#include "operations.hpp"
#include "task.hpp"
#include "unique_fd.hpp"

namespace uring {
namespace {

constexpr unsigned places = 4;

std::string words_for(const io_result& ended) {
  return words_for(completion{0, ended ? ended.fd() : -ended.error(), 0});
}

task<> do_nothing(io_context& context) {
  (void)co_await nop_op(context);
}

task<> copy_ten_bytes(io_context& context, int from, int to) {
  std::array<std::byte, 10> buffer{};
  const auto ended =
      co_await linked(read_op(context, from, buffer, 0), write_op(context, to, buffer, 0));
  std::printf("read %s, write %s\n", words_for(std::get<0>(ended)).c_str(),
              words_for(std::get<1>(ended)).c_str());
}

}  // namespace

void show_chain() {
  const common::unique_fd ten = file_with("0123456789");
  const common::unique_fd to = file_with("");
  for (unsigned taken = 0; taken < places; ++taken) {
    io_context context{{.sq_entries = places, .cq_entries = 2 * places}};
    for (unsigned i = 0; i < taken; ++i) context.spawn(do_nothing(context));
    std::printf("%u of %u places taken: ", taken, places);
    context.run(copy_ten_bytes(context, ten.get(), to.get()));
  }
}

}  // namespace uring
