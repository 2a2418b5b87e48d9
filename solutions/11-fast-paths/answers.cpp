// SPDX-License-Identifier: MIT
// 11-answers: shows what the kernel answers to the requests of this chapter, one small case after
// the other.
//
//   ./course run 11:answers -- --about links
#include "answers.hpp"

#include <string>

#include "program_main.hpp"

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 11: what the kernel answers."};
  std::string topic = "links";
  flags.add("--about", topic, {"links", "chain", "slots", "zero-copy"}, "Which requests");
  return common::program_main(argc, argv, flags, [&] {
    if (topic == "links") uring::show_links();
    if (topic == "chain") uring::show_chain();
    if (topic == "slots") uring::show_slots();
    if (topic == "zero-copy") uring::show_zero_copy();
  });
}
