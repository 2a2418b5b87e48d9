// SPDX-License-Identifier: MIT
// Chapter 08's canceler in its smallest form: it is canceled when the test says so, and knows which
// operations are in flight.
// Owns     nothing; it lists the operations.
// Lifetime it must outlive every operation that was started through it.
// Threads  the one that runs the queue.
#pragma once

#include "canceler.hpp"
#include "io_operation.hpp"
#include "list_link.hpp"

namespace course_test {

class noting_canceler final : public uring::canceler {
 public:
  using uring::canceler::canceler;

  void watch(uring::io_operation& started) noexcept override { in_flight.push_back(started); }

  void cancel() noexcept { is_canceled_ = true; }

  uring::linked_list<uring::io_operation> in_flight;
};

}  // namespace course_test
