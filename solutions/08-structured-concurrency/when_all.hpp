// SPDX-License-Identifier: MIT
// Runs several tasks at the same time, and waits for all of them.
// Owns     the tasks, until all have ended.
// Lifetime `others` must live until then.
// Threads  the one that runs the io_context.
// Errors   the first exception cancels `others`, so that tasks that use this source end early. The
//          exception is thrown when all have ended. Later exceptions are dropped, because most of
//          them only say that a task was canceled.
// Rule     returns only when the last task has ended, even if one has failed: no task is left over.
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cancel_source.hpp"
#include "join.hpp"
#include "outcome.hpp"
#include "task.hpp"

namespace uring {

// In the tuple of results, a task<> has a std::monostate.
template <typename T>
using value_or_nothing = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <typename T>
value_or_nothing<T> take_or_nothing(outcome<T>& from) {
  if constexpr (std::is_void_v<T>) {
    from.take();
    return {};
  } else {
    return from.take();
  }
}

// co_await when_all(source, a(), b()): a tuple of what a and b returned.
template <typename... T>
task<std::tuple<value_or_nothing<T>...>> when_all(cancel_source& others, task<T>... tasks) {
  std::tuple<outcome<T>...> results;
  join_counter counter{sizeof...(T)};
  auto frames = std::apply(
      [&](outcome<T>&... into) {
        return std::array<joined_frame, sizeof...(T)>{
            join_or_cancel(counter, others, std::move(tasks), into)...};
      },
      results);
  for (joined_frame& each : frames) each.start();  // only now, because making a frame may throw
  co_await counter;
  co_return std::apply(
      [](outcome<T>&... from) {
        return std::tuple<value_or_nothing<T>...>{take_or_nothing(from)...};
      },
      results);
}

// The same for tasks whose number is known only at run time. The results are in the tasks' order.
template <typename T>
  requires(!std::is_reference_v<T>)
task<std::vector<value_or_nothing<T>>> when_all(cancel_source& others, std::vector<task<T>> tasks) {
  std::vector<outcome<T>> results(tasks.size());
  std::vector<joined_frame> frames;
  frames.reserve(tasks.size());
  join_counter counter{tasks.size()};
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    frames.push_back(join_or_cancel(counter, others, std::move(tasks[i]), results[i]));
  }
  for (joined_frame& each : frames) each.start();
  co_await counter;
  std::vector<value_or_nothing<T>> values;
  values.reserve(results.size());
  for (outcome<T>& each : results) values.push_back(take_or_nothing(each));
  co_return values;
}

}  // namespace uring
