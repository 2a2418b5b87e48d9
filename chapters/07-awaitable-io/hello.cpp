// SPDX-License-Identifier: MIT
// 07-hello: a line on standard output, written by the kernel while a coroutine waits for it.
//
//   ./course run 07:hello
//   ./course run 07:hello -- --text "two words" --times 3
#include <unistd.h>

#include <cstdint>
#include <span>
#include <string>

#include "io_context.hpp"
#include "program_main.hpp"
#include "transfers.hpp"

namespace {

uring::task<> say(uring::io_context& context, std::string line, std::int64_t times) {
  for (std::int64_t i = 0; i < times; ++i) {
    co_await uring::write_all(context, STDOUT_FILENO, std::as_bytes(std::span{line}));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string text = "hello from a frame";
  std::int64_t times = 1;
  common::flag_set flags{"Chapter 07: hello, through a ring."};
  flags.add("--text", text, "What to say");
  flags.add("--times", times, 1, 1'000'000, "How often");
  return common::program_main(argc, argv, flags, [&] {
    uring::io_context context;
    context.run(say(context, text + "\n", times));
  });
}
