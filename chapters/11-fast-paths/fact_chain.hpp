// SPDX-License-Identifier: MIT
// Functions with which 11-facts runs a chain of requests on a ring of its own, and prints numbers.
// They use the ring without the runtime, to count the completions and the wake-ups.
// Errors   std::system_error if the ring fails.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

#include "errors.hpp"
#include "ring.hpp"

namespace uring {

using prepare_fact = std::function<void(::io_uring_sqe&)>;

inline void print_fact(const char* what, std::int64_t number) {
  std::printf("  %s: %jd\n", what, std::intmax_t{number});
}

// A count of bytes, or the reason why there is none.
inline void print_bytes(const char* what, std::int32_t res) {
  if (res >= 0) return print_fact(what, res);
  std::printf("  %s: 0 bytes, %s\n", what, common::describe_errno(res).c_str());
}

// Puts requests into the queue, to be submitted as one; user_data counts up from 0.
inline void put_chain(ring& into, const std::vector<prepare_fact>& requests, std::uint8_t link) {
  into.reserve(static_cast<unsigned>(requests.size()));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ::io_uring_sqe& sqe = into.get_sqe();
    requests[i](sqe);
    sqe.user_data = i;
    if (i + 1 < requests.size()) sqe.flags |= link;
  }
}

struct chain_outcome {
  std::int32_t last = 0;  // the result of the last request
  std::int64_t completions = 0;
  std::int64_t waits = 0;  // how often the program was woken
};

inline chain_outcome run_chain(const std::vector<prepare_fact>& requests,
                               std::uint8_t link = IOSQE_IO_LINK) {
  ring own{{}};
  chain_outcome seen;
  put_chain(own, requests, link);
  for (bool is_over = false; !is_over;) {
    if (own.submit_and_wait() != wake::completions) continue;
    ++seen.waits;
    for (const completion& done : own.reap()) {
      ++seen.completions;
      if (done.user_data != requests.size() - 1) continue;
      seen.last = done.res;
      is_over = true;
    }
  }
  return seen;
}

// Only the last request reports its success, so that the program is woken by the chain's end alone.
inline std::vector<prepare_fact> without_success(std::vector<prepare_fact> requests) {
  for (std::size_t i = 0; i + 1 < requests.size(); ++i) {
    requests[i] = [plain = requests[i]](::io_uring_sqe& sqe) {
      plain(sqe);
      sqe.flags |= IOSQE_CQE_SKIP_SUCCESS;
    };
  }
  return requests;
}

}  // namespace uring
