// SPDX-License-Identifier: MIT
// Linked requests that a coroutine can await: a few of different kinds, or many of one kind.
// Owns     the requests and their operations.
// Lifetime they live in the awaiting frame, which goes on when all of them have ended.
// Threads  the one that runs the queue.
// Errors   each request has its own result, see link_chain.hpp.
// Rule     all of them have the same io, and they fit into the submission queue together.
#pragma once

#include <liburing.h>

#include <array>
#include <coroutine>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "io_request.hpp"
#include "link_chain.hpp"

namespace uring {

// ---- a few requests, each of its own kind ----

template <typename... Prepare>
class [[nodiscard("submitted when awaited")]] linked_awaiter {
 public:
  explicit linked_awaiter(unsigned link, const io_request<Prepare>&... requests) noexcept
      : requests_{requests...}, chain_{link} {}
  linked_awaiter(linked_awaiter&&) = delete;  // the kernel holds addresses of its parts

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> awaiting) {
    return chain_.start(std::get<0>(requests_).io, parts_, awaiting,
                        [this](std::size_t i, ::io_uring_sqe& sqe) { prepare(i, sqe); });
  }
  auto await_resume() const { return results(std::index_sequence_for<Prepare...>{}); }

 private:
  void prepare(std::size_t which, ::io_uring_sqe& sqe) const {
    std::size_t at = 0;
    const auto if_it_is_its_turn = [&](const auto& request) {
      if (at++ == which) request.prepare(sqe);
    };
    std::apply([&](const auto&... request) { (if_it_is_its_turn(request), ...); }, requests_);
  }

  template <std::size_t... I>
  auto results(std::index_sequence<I...>) const {
    return std::tuple{result_of(std::get<I>(requests_).prepare,
                                std::get<I>(requests_).io.as_canceled(parts_[I].done))...};
  }

  std::tuple<io_request<Prepare>...> requests_;
  std::array<link_chain::part, sizeof...(Prepare)> parts_;
  link_chain chain_;
};

// const auto results = co_await linked(read_op(…), write_op(…)): a tuple of their results. All of
// them have the same io.
template <typename... Prepare>
auto linked(const io_request<Prepare>&... requests) noexcept {
  static_assert(std::is_trivially_destructible_v<linked_awaiter<Prepare...>>,
                "it may stand beside co_await");
  return linked_awaiter<Prepare...>{IOSQE_IO_LINK, requests...};
}

// Each request begins when the one before it has ended, even if that one failed.
template <typename... Prepare>
auto hard_linked(const io_request<Prepare>&... requests) noexcept {
  return linked_awaiter<Prepare...>{IOSQE_IO_HARDLINK, requests...};
}

// ---- as many requests as there are at run time, all of one kind ----

enum class chain_answers {
  each,  // every request completes, and wakes up the program
  one,   // only the last request completes, or the one that has broken the chain
};

// linked_steps chain{io, steps, chain_answers::one}; co_await chain. It is awaited once.
template <typename Prepare>
class linked_steps {
 public:
  linked_steps(const io_handle& io, std::vector<Prepare> steps, chain_answers answers)
      : io_{io},
        steps_{std::move(steps)},
        parts_(steps_.size()),
        chain_{answers == chain_answers::one ? IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS
                                             : IOSQE_IO_LINK} {}
  linked_steps(linked_steps&&) = delete;  // the kernel holds addresses of its parts

  bool await_ready() const noexcept { return steps_.empty(); }
  bool await_suspend(std::coroutine_handle<> awaiting) {
    return chain_.start(io_, parts_, awaiting,
                        [this](std::size_t i, ::io_uring_sqe& sqe) { steps_[i](sqe); });
  }
  void await_resume() const noexcept {}

  [[nodiscard]] const std::vector<Prepare>& steps() const noexcept { return steps_; }
  // With chain_answers::one, the step that has completed: all before it have succeeded in full.
  [[nodiscard]] std::size_t answered() const noexcept { return chain_.answered(); }
  // How a completed step has ended.
  [[nodiscard]] auto result(std::size_t i) const {
    return result_of(steps_[i], io_.as_canceled(parts_[i].done));
  }

 private:
  io_handle io_;
  std::vector<Prepare> steps_;
  std::vector<link_chain::part> parts_;
  link_chain chain_;
};

}  // namespace uring
