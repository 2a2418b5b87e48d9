// SPDX-License-Identifier: MIT
// Awaits a cleanup after a task, however the task ends, because a destructor cannot co_await.
// Owns     both tasks.
// Lifetime the objects that they refer to must live until this task has ended.
// Threads  that of the coroutine which awaits it.
// Errors   throws the exception of `body`, or else that of `cleanup`.
// Rule     for objects whose end must be awaited, such as a stream: call next() in the body, and
//          write co_await finally(consume(stream), stream.end()).
#pragma once

#include <utility>

#include "outcome.hpp"
#include "task.hpp"

namespace uring {

template <typename T>
task<T> finally(task<T> body, task<> cleanup) {
  outcome<T> of_body = co_await std::move(body).as_outcome();
  outcome<void> of_cleanup = co_await std::move(cleanup).as_outcome();
  if (of_body.has_value()) of_cleanup.take();
  co_return of_body.take();
}

}  // namespace uring
