// SPDX-License-Identifier: MIT
// Design choices that may make a server slower, one switch for each. With all of them off, the
// server is the best that we know; with all of them on, it works like a published one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "flags.hpp"
#include "ring_options.hpp"

namespace uring {

struct lab_switches {
  bool submits_each_batch = false;  // by a call of its own, before it waits
  bool looks_first = false;         // waits only if no completion is there
  bool one_shot = false;            // a recv for each message, into a buffer of the client's own
  bool nonblocking = false;         // O_NONBLOCK on every socket
  bool nagle = false;               // TCP_NODELAY off, as in the published server
  std::int64_t wait_for = 1;        // completions
};

inline void add_lab_switches(common::flag_set& flags, lab_switches& switches) {
  flags.add("--submit-each-batch", switches.submits_each_batch,
            "After each batch a submit of its own, and then a wait");
  flags.add("--look-first", switches.looks_first, "Wait only if no completion is there");
  flags.add("--one-shot", switches.one_shot, "A recv for each message, a buffer for each client");
  flags.add("--nonblocking", switches.nonblocking, "Sockets that do not block");
  flags.add("--nagle", switches.nagle, "Sockets without TCP_NODELAY");
  flags.add("--wait-for", switches.wait_for, 1, 4096,
            "Completions to wait for; more than one for a millisecond at most");
}

// Counts over the loops of all threads.
struct lab_counts {
  std::uint64_t waits = 0;
  std::uint64_t enters = 0;
  std::uint64_t completions = 0;
  std::uint64_t sends = 0;

  void add(const lab_counts& other) noexcept {
    waits += other.waits;
    enters += other.enters;
    completions += other.completions;
    sends += other.sends;
  }
};

}  // namespace uring
