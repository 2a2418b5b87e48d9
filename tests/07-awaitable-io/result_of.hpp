// SPDX-License-Identifier: MIT
// One request, awaited: its res, as the kernel gave it.
// Lifetime the memory that the request leads to must live until the task has ended.
// Threads  the one that runs the request's context.
// Errors   none: a failure is a negative number.
#pragma once

#include "io_request.hpp"
#include "task.hpp"

namespace course_test {

template <typename Prepare>
uring::task<int> result_of(uring::io_request<Prepare> request) {
  const uring::io_result ended = co_await request;
  co_return ended ? ended.fd() : -ended.error();
}

}  // namespace course_test
