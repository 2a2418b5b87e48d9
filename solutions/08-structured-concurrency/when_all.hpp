// SPDX-License-Identifier: MIT
// All of several tasks, at the same time.
// Owns     the tasks, until all have ended.
// Lifetime `others` must live until then.
// Threads  the one that runs the io_context.
// Errors   throws the first exception, in the tasks' order, when all have ended. The first to come
//          cancels `others`, so that the rest can end early if they listen to it.
// Rule     returns when the last task has ended, whatever the first one did: nothing is left behind.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cancel_source.hpp"
#include "join.hpp"
#include "outcome.hpp"
#include "task.hpp"
#include "todo.hpp"

namespace uring {

template <typename T>
joined_frame join_or_cancel(task<T> joined, outcome<T>& into, cancel_source& others) {
  outcome<T> ended = co_await std::move(joined).as_outcome();
  if (ended.error() != nullptr) others.cancel();
  into = std::move(ended);
}
