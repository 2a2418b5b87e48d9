// SPDX-License-Identifier: MIT
// The real kernel's answers to a prepared request, without a stream: every item, in order.
// Owns     the items.
// Lifetime it stays until the request has ended, or the queue was closed.
// Threads  the one that runs the queue.
#pragma once

#include <liburing.h>

#include <vector>

#include "io_operation.hpp"

namespace course_test {

template <typename Prepare>
struct heard_items : uring::io_operation {
  explicit heard_items(const Prepare& request)
      : io_operation{[](io_operation& self, const uring::completion& done) {
          auto& to = static_cast<heard_items&>(self);
          to.items.push_back(to.prepare.result(done));
          to.is_in_flight = (done.flags & IORING_CQE_F_MORE) != 0;
        }},
        prepare{request} {}

  Prepare prepare;
  std::vector<decltype(prepare.result({}))> items;
  bool is_in_flight = true;
};

}  // namespace course_test
