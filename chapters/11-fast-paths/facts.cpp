// SPDX-License-Identifier: MIT
// 11-facts: what links, workers and registered buffers do on this kernel, as numbers.
//
//   ./course run 11:facts
#include "buffer_facts.hpp"
#include "link_facts.hpp"
#include "program_main.hpp"
#include "worker_facts.hpp"

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 11: what links, workers and registered buffers do here."};
  return common::program_main(argc, argv, flags, [] {
    uring::show_workers();  // first, because the others may leave worker threads behind
    uring::show_wake_ups();
    uring::show_short_transfers();
    uring::show_registered_buffers();
  });
}
