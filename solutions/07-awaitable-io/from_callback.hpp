// SPDX-License-Identifier: MIT
// Any function that reports by a callback, as a task: the callback's arguments are its result.
// Owns     the promise that the callback settles, in the task's frame.
// Lifetime the callback comes once, perhaps before `start` has returned. If the task is destroyed
//          before that, as when io_context::run() gives up, the callback must not come any more.
// Threads  the callback may come on any thread; the coroutine then goes on there. A task of an
//          io_context must be called back on the context's own thread.
// Errors   what `start` throws. An error among the callback's arguments is a value like the others.
// Rule     `start` either throws or calls back, never both.
#pragma once

#include <tuple>
#include <utility>

#include "promise.hpp"
#include "task.hpp"

namespace uring {

// --8<-- [start:from-callback]
// The arguments of a callback: nothing, one value, or several as a tuple.
template <typename... Arguments>
struct called_with {
  using type = std::tuple<Arguments...>;
};
template <typename Argument>
struct called_with<Argument> {
  using type = Argument;
};
template <>
struct called_with<> {
  using type = void;
};

// from_callback<std::error_code, std::size_t>(start): `start` is called with a callback that takes
// those two, and the task ends with both.
template <typename... Arguments, typename Start>
task<typename called_with<Arguments...>::type> from_callback(Start start) {
  promise<typename called_with<Arguments...>::type> answer;
  start(
      [&answer](Arguments... arguments) { answer.resolve(std::forward<Arguments>(arguments)...); });
  co_return co_await answer;
}
// --8<-- [end:from-callback]

}  // namespace uring
