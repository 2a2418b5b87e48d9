// SPDX-License-Identifier: MIT
// One request to the kernel, as something that a coroutine awaits: what every operation is made of.
// Owns     what its `prepare` holds, such as a timespec; never a descriptor or a buffer.
// Lifetime while it is awaited it lives in the awaiting frame, which must not be destroyed then.
//          Descriptors and buffers must live until co_await has returned.
// Threads  the one that runs `context`.
// Errors   how it ended is the io_result; std::system_error if the ring takes no more requests.
// Rule     nothing is submitted before it is awaited: a request that nobody awaits leaves no trace.
#pragma once

#include <liburing.h>

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "io_context.hpp"
#include "io_operation.hpp"
#include "io_result.hpp"
#include "todo.hpp"

namespace uring {

template <typename Prepare>
class io_awaitable;

// What is to be done, not yet begun: a value. `prepare(sqe)` fills in all of an SQE but user_data;
// it is called once, on the copy that is awaited, and may give the kernel addresses of its members.
template <typename Prepare>
struct [[nodiscard("nothing is submitted until it is awaited")]] io_request {
  io_awaitable<Prepare> operator co_await() const noexcept;

  io_context& context;
  Prepare prepare;
};

// What one request can move at most: no more than read(2) does, and a longer length would not fit
// into an SQE.
inline constexpr std::size_t transfer_bytes_max = 0x7fff'f000;

// The beginning of `bytes`, if it is more than that: a short transfer.
template <typename Byte>
[[nodiscard]] std::span<Byte> transferable(std::span<Byte> bytes) noexcept {
  return bytes.first(std::min(bytes.size(), transfer_bytes_max));
}

// A request under way, at an address that the kernel knows.
template <typename Prepare>
class io_awaitable : public io_operation {
  // A temporary with a destructor beside co_await is what GCC 12 gets wrong.
  static_assert(std::is_trivially_destructible_v<Prepare>, "prepare must hold plain values only");

 public:
  explicit io_awaitable(const io_request<Prepare>& request) noexcept
      : io_operation{&on_completion}, request_{request} {}

  bool await_ready() const noexcept { return false; }

  // Remembers whom the completion will resume, and starts the request.
  void await_suspend(std::coroutine_handle<> awaiting) {
    // --8<-- [start:task-07-1]
    awaiting_ = awaiting;
    request_.context.start(*this, request_.prepare);
    // --8<-- [end:task-07-1]
  }

  io_result await_resume() const noexcept { return io_result{res_}; }

 private:
  // Keeps the result for await_resume(), and resumes the frame; `self` may be gone after that.
  static void on_completion(io_operation& self, const completion& done) {
    // --8<-- [start:task-07-1b]
    auto& completed = static_cast<io_awaitable&>(self);
    completed.res_ = done.res;
    completed.awaiting_.resume();
    // --8<-- [end:task-07-1b]
  }

  io_request<Prepare> request_;
  std::coroutine_handle<> awaiting_;
  std::int32_t res_ = 0;
};

template <typename Prepare>
io_awaitable<Prepare> io_request<Prepare>::operator co_await() const noexcept {
  return io_awaitable<Prepare>{*this};
}

}  // namespace uring
