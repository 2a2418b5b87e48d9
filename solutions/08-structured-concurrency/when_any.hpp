// SPDX-License-Identifier: MIT
// Runs several tasks at the same time, and returns the result of the first one to end.
// Owns     the tasks, until all have ended.
// Lifetime `losers` must live until then.
// Threads  the one that runs the io_context.
// Errors   if the first task to end threw, throws its exception when all have ended. The results
//          and exceptions of the other tasks are dropped.
// Rule     the losers are canceled *and joined*. If one does not use `losers`, it runs to its end.
#pragma once

#include <cassert>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "cancel_source.hpp"
#include "join.hpp"
#include "outcome.hpp"
#include "task.hpp"
#include "todo.hpp"
#include "when_all.hpp"

namespace uring {

template <typename T>
struct first_result {
  std::size_t index;  // of the task that ended first
  value_or_nothing<T> value;
};

template <typename T>
struct first_ended {
  std::optional<std::size_t> index;
  outcome<T> result;
};

// The first task to end stores its index and its outcome in `first`, and then cancels the others
// through `losers`. Later tasks store nothing. (`counter` is for the frame's promise.)
template <typename T>
joined_frame race([[maybe_unused]] join_counter& counter, cancel_source& losers, task<T> runner,
                  std::size_t index, first_ended<T>& first) {
  outcome<T> ended = co_await std::move(runner).as_outcome();
  // --8<-- [start:task-08-2]
  if (first.index.has_value()) co_return;
  first.index = index;
  first.result = std::move(ended);
  losers.cancel();
  // --8<-- [end:task-08-2]
}

template <typename T>
task<first_result<T>> when_any(cancel_source& losers, std::vector<task<T>> tasks) {
  assert(!tasks.empty() && "when_any needs at least one task");
  first_ended<T> first;
  std::vector<joined_frame> frames;
  frames.reserve(tasks.size());
  // Makes one join_counter for all tasks, and a race() frame for each task, in `frames`. Making a
  // frame may throw, so start() is called only when all frames are made. Then awaits the counter.
  // --8<-- [start:task-08-2b]
  join_counter counter{tasks.size()};
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    frames.push_back(race(counter, losers, std::move(tasks[i]), i, first));
  }
  for (joined_frame& each : frames) each.start();
  co_await counter;
  // --8<-- [end:task-08-2b]
  co_return first_result<T>{*first.index, take_or_nothing(first.result)};
}

// co_await when_any(source, a(), b()): tasks of one type.
template <typename T, typename... More>
task<first_result<T>> when_any(cancel_source& losers, task<T> first, task<More>... more) {
  std::vector<task<T>> tasks;
  tasks.reserve(1 + sizeof...(more));
  tasks.push_back(std::move(first));
  (tasks.push_back(std::move(more)), ...);
  return when_any(losers, std::move(tasks));
}

}  // namespace uring
