// SPDX-License-Identifier: MIT
// The kernel's answers: each completion as a word or two, in the order in which they come.
// Lifetime the memory that a request points at must live until the answer was shown.
// Threads  one at a time.
// Errors   std::system_error if the ring fails.
#pragma once

#include <liburing.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include "errors.hpp"
#include "ring.hpp"

namespace uring {

// A completion as "10", "ECANCELED" or "5 F_MORE".
[[nodiscard]] inline std::string words_for(const completion& done) {
  std::string words = std::to_string(done.res);
  if (done.res < 0) {
    words = common::describe_errno(done.res);
    words = words.substr(0, words.find(' '));
  }
  if ((done.flags & IORING_CQE_F_MORE) != 0) words += " F_MORE";
  if ((done.flags & IORING_CQE_F_NOTIF) != 0) words += " F_NOTIF";
  return words;
}

// Submits the prepared requests and shows their completions, until no more come. Returns how many
// came.
inline int show_answers(ring& ring, std::string_view of_what) {
  constexpr std::chrono::milliseconds patience_ms{200};
  int answers = 0;
  std::printf("%-35s", std::string{of_what}.c_str());
  while (ring.submit_and_wait(patience_ms) == wake::completions) {
    for (const completion& done : ring.reap()) {
      std::printf("%s%d: %s", answers > 0 ? "   " : " ", static_cast<int>(done.user_data),
                  words_for(done).c_str());
      ++answers;
    }
  }
  std::printf("%s\n", answers == 0 ? " nothing" : "");
  return answers;
}

// One topic each.
void show_links();
void show_chain();
void show_slots();
void show_zero_copy();

}  // namespace uring
