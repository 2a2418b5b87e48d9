// SPDX-License-Identifier: MIT
// How a computation ended: with a value, with an exception, or not yet.
// Owns     the value or the exception; if T is a reference, only the address.
// Lifetime the object behind a reference must outlive the code that takes the outcome.
// Threads  one at a time.
// Errors   take() throws the exception that was set. Moving an outcome never throws: if the move of
//          the value throws, the outcome holds that exception instead.
// Rule     set once, taken once. Only an exception may be set after a value: it replaces the value.
#pragma once

#include <cassert>
#include <cstddef>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

namespace uring {

template <typename T>
class outcome {
  static_assert(!std::is_rvalue_reference_v<T>, "return a value instead: it is moved out");

 public:
  outcome() noexcept = default;
  outcome(outcome&& other) noexcept { take_over(other); }
  outcome& operator=(outcome&& other) noexcept {
    if (this != &other) take_over(other);
    return *this;
  }

  // Makes the T, as T(value...) would. outcome<void> takes no value, outcome<T&> takes one lvalue.
  template <typename... Value>
  void set_value(Value&&... value) {
    if constexpr (std::is_reference_v<T>) {
      static_assert((can_be_referred_to<Value> && ...), "it would refer to a temporary");
      held_.template emplace<at_value>(std::addressof(value)...);
    } else {
      held_.template emplace<at_value>(std::forward<Value>(value)...);
    }
  }

  // NOLINTNEXTLINE(bugprone-exception-escape): moving a pointer into the variant throws nothing
  void set_exception(std::exception_ptr error) noexcept {
    held_.template emplace<at_error>(std::move(error));
  }

  // Moves the value out and returns it, or throws the exception.
  T take() {
    assert(is_set() && "nothing has ended yet: wait before you take the result");
    if (held_.index() == at_error) std::rethrow_exception(std::get<at_error>(std::move(held_)));
    if constexpr (std::is_reference_v<T>) {
      return *std::get<at_value>(held_);
    } else if constexpr (!std::is_void_v<T>) {
      return std::get<at_value>(std::move(held_));
    }
  }

  // Returns the exception, or null.
  [[nodiscard]] std::exception_ptr error() const noexcept {
    const auto* const held = std::get_if<at_error>(&held_);
    return held != nullptr ? *held : nullptr;
  }

  [[nodiscard]] bool is_set() const noexcept { return held_.index() != 0; }
  [[nodiscard]] bool has_value() const noexcept { return held_.index() == at_value; }

 private:
  struct nothing {};
  using stored = std::conditional_t<
      std::is_void_v<T>, nothing,
      std::conditional_t<std::is_reference_v<T>, std::add_pointer_t<T>, std::remove_cv_t<T>>>;
  static constexpr std::size_t at_value = 1;
  static constexpr std::size_t at_error = 2;

  // True only for an lvalue of the right type, because a conversion would make a temporary.
  template <typename Value>
  static constexpr bool can_be_referred_to =
      std::is_lvalue_reference_v<Value> &&
      std::is_convertible_v<std::add_pointer_t<Value>, std::add_pointer_t<T>>;

  // The value's type needs a move constructor for this, but no assignment.
  // NOLINTNEXTLINE(bugprone-exception-escape): an exception from the value's move is kept
  void take_over(outcome& other) noexcept {
    if (auto* const value = std::get_if<at_value>(&other.held_)) {
      try {
        held_.template emplace<at_value>(std::move(*value));
      } catch (...) {
        set_exception(std::current_exception());
      }
    } else if (auto* const error = std::get_if<at_error>(&other.held_)) {
      set_exception(std::move(*error));
    } else {
      held_.template emplace<0>();
    }
  }

  std::variant<std::monostate, stored, std::exception_ptr> held_;
};

}  // namespace uring
