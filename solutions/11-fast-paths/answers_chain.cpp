// SPDX-License-Identifier: MIT
// The answers to a chain of linked(), in a queue of four places, some of which are taken.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <tuple>

#include "answers.hpp"
#include "errors.hpp"
#include "file_operations.hpp"
#include "io_context.hpp"
#include "linked.hpp"
#include "local_pair.hpp"
#include "memory_file.hpp"
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
      co_await linked(recv_op(context, from, buffer), write_op(context, to, buffer, 0));
  std::printf("received %s, wrote %s: ", words_for(std::get<0>(ended)).c_str(),
              words_for(std::get<1>(ended)).c_str());
}

// Sends the bytes once the chain waits for them.
task<> say_later(io_context& context, const common::local_pair& pair) {
  (void)co_await nop_op(context);
  pair.say("0123456789");
}

// The bytes that were written, with a dash for each byte that had not been received by then.
std::string text_in(int file) {
  std::string text(10, ' ');
  text.resize(static_cast<std::size_t>(common::check(::pread(file, text.data(), 10, 0), "pread")));
  std::ranges::replace(text, '\0', '-');
  return text;
}

}  // namespace

void show_chain() {
  for (unsigned taken = 0; taken < places; ++taken) {
    const common::local_pair pair;
    const common::unique_fd to = file_with("");
    io_context context{{.sq_entries = places, .cq_entries = 2 * places}};
    for (unsigned i = 0; i < taken; ++i) context.spawn(do_nothing(context));
    std::printf("%u of %u places taken: ", taken, places);
    context.spawn(copy_ten_bytes(context, pair.ours.get(), to.get()));
    context.run(say_later(context, pair));
    context.run();
    std::printf("%s\n", text_in(to.get()).c_str());
  }
}

}  // namespace uring
