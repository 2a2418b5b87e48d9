// SPDX-License-Identifier: MIT
// How a ring is set up: its sizes, and when the kernel may do its part of the work.
// Lifetime a ring_command_line holds its flags' values, so it must live until parse() has returned.
// Threads  main(), before it starts any other thread.
// Errors   an invalid value ends the program with a sentence and status 2, in parse().
// See      io_uring_setup(2)
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "flags.hpp"

namespace uring {

// One name for each set of IORING_SETUP_* flags that is worth comparing.
enum class ring_mode {
  plain,   // none: the kernel interrupts the thread to finish an operation
  coop,    // COOP_TASKRUN: the kernel waits until the thread enters it, for any reason
  defer,   // SINGLE_ISSUER, DEFER_TASKRUN: the kernel waits until the thread enters for completions
  sqpoll,  // SQPOLL: a kernel thread fetches submissions
};

// The names of the modes, for --ring-flags and for messages, in the order of ring_mode.
inline constexpr std::array ring_mode_names{"default", "coop", "defer", "sqpoll"};

[[nodiscard]] constexpr const char* name_of(ring_mode mode) noexcept {
  return ring_mode_names[static_cast<std::size_t>(mode)];
}

struct ring_options {
  ring_mode mode = ring_mode::plain;
  unsigned sq_entries = 256;   // the kernel rounds both up to powers of two
  unsigned cq_entries = 4096;  // never fewer than the submission queue has
  bool is_disabled = false;    // nothing can be submitted before a thread has enabled the ring
};

// The flags --ring-flags, --sq and --cq. From this chapter on, the servers take them.
class ring_command_line {
 public:
  explicit ring_command_line(common::flag_set& flags, const ring_options& defaults = {})
      : mode_{name_of(defaults.mode)},
        sq_entries_{defaults.sq_entries},
        cq_entries_{defaults.cq_entries} {
    flags.add("--ring-flags", mode_, {ring_mode_names.begin(), ring_mode_names.end()},
              "How the ring is set up");
    flags.add("--sq", sq_entries_, 1, 32768, "Entries of the submission queue");
    flags.add("--cq", cq_entries_, 1, 65536, "Entries of the completion queue");
  }
  ring_command_line(ring_command_line&&) = delete;  // the flag_set holds addresses of the members

  [[nodiscard]] ring_options options() const {
    // parse() accepts only these names, so find() succeeds.
    const auto mode = std::ranges::find(ring_mode_names, mode_) - ring_mode_names.begin();
    return {.mode = static_cast<ring_mode>(mode),
            .sq_entries = static_cast<unsigned>(sq_entries_),
            .cq_entries = static_cast<unsigned>(cq_entries_)};
  }

 private:
  std::string mode_;
  std::int64_t sq_entries_;
  std::int64_t cq_entries_;
};

}  // namespace uring
