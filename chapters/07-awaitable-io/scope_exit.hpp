// SPDX-License-Identifier: MIT
// Runs an action when a scope is left, in whatever way it is left.
// Owns     the action.
// Lifetime the objects that the action refers to must outlive the scope; in a coroutine, the frame.
// Threads  the scope's.
// Errors   the action must not throw: that ends the program.
// Rule     give the object a name. A temporary without a name runs its action immediately.
#pragma once

#include <type_traits>
#include <utility>

namespace uring {

template <typename Action>
class [[nodiscard("it needs a name to live until the end of the scope")]] scope_exit {
 public:
  explicit scope_exit(Action action) noexcept(std::is_nothrow_move_constructible_v<Action>)
      : action_{std::move(action)} {}
  scope_exit(scope_exit&&) = delete;
  ~scope_exit() { action_(); }  // NOLINT(bugprone-exception-escape): then the program ends

 private:
  Action action_;
};

}  // namespace uring
