// SPDX-License-Identifier: MIT
// Turns a function that takes a callback into a task. The callback's arguments are the result.
// Owns     the promise that the callback settles, in the task's frame.
// Lifetime the callback must be called once, perhaps before `start` has returned, but not after the
//          task was destroyed. (When io_context::run() throws, it destroys tasks that still wait.)
// Threads  any thread may call the callback; the coroutine continues on that thread. For a task of
//          an io_context, only the context's own thread may call the callback.
// Errors   throws what `start` throws. An error that the callback gets is one of the values.
// Rule     `start` either throws or calls back, never both.
#pragma once

#include <tuple>
#include <utility>

#include "promise.hpp"
#include "task.hpp"

namespace uring {

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

// from_callback<std::error_code, std::size_t>(start): the callback that `start` gets takes two
// arguments of these types, and the task returns both.
template <typename... Arguments, typename Start>
task<typename called_with<Arguments...>::type> from_callback(Start start) {
  promise<typename called_with<Arguments...>::type> answer;
  start(
      [&answer](Arguments... arguments) { answer.resolve(std::forward<Arguments>(arguments)...); });
  co_return co_await answer;
}

}  // namespace uring
