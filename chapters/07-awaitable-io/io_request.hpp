// SPDX-License-Identifier: MIT
// One request to the kernel that a coroutine can await. Every operation is made of this.
// Owns     what its `prepare` holds, such as a timespec; never a descriptor or a buffer.
// Lifetime while awaited it lives in the awaiting frame, which must not be destroyed meanwhile.
//          Descriptors and buffers must live until co_await has returned.
// Threads  the one that runs the io_queue.
// Errors   the result says how the request ended; std::system_error if the ring takes no more.
// Rule     a request is submitted only when it is awaited. Without a co_await it has no effect.
#pragma once

#include <liburing.h>

#include <algorithm>
#include <cassert>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "io_handle.hpp"
#include "io_operation.hpp"
#include "io_result.hpp"
#include "todo.hpp"

namespace uring {

template <typename Prepare>
class io_awaiter;

// A request that has not begun: a value. `prepare(sqe)` fills in all of an SQE except user_data.
// It is called once for each co_await, and may give the kernel addresses of its members.
template <typename Prepare>
struct [[nodiscard("nothing is submitted until it is awaited")]] io_request {
  io_awaiter<Prepare> operator co_await() const noexcept;

  io_handle io;
  Prepare prepare;
};

// Makes the result of co_await: prepare.result(done) if there is such a function, or an io_result.
template <typename Prepare>
auto result_of(const Prepare& prepare, const completion& done) {
  if constexpr (requires { prepare.result(done); }) {
    return prepare.result(done);
  } else {
    return io_result{done.res};
  }
}

// The most that one request can move: no more than read(2) does. A length of 2^32 or more would not
// fit into an SQE.
inline constexpr std::size_t transfer_bytes_max = 0x7fff'f000;

// At most the first transfer_bytes_max of `bytes`. If there are more, the transfer is short.
template <typename Byte>
[[nodiscard]] std::span<Byte> transferable(std::span<Byte> bytes) noexcept {
  return bytes.first(std::min(bytes.size(), transfer_bytes_max));
}

// A request under way, at an address that the kernel holds. It refers to the io_request, which
// stays in the awaiting frame until co_await has returned.
template <typename Prepare>
class io_awaiter : public io_operation {
  // GCC 12 miscompiles a temporary with a destructor beside co_await.
  static_assert(std::is_trivially_destructible_v<Prepare>, "prepare must hold plain values only");

 public:
  explicit io_awaiter(const io_request<Prepare>& request) noexcept
      : io_operation{&on_completion}, request_{request} {}
  explicit io_awaiter(const io_request<Prepare>&&) = delete;  // a temporary would be gone too early

  bool await_ready() const noexcept { return false; }

  // Keeps `awaiting` in continuation_, for the completion. Then starts the request with
  // request_.io.start(), which takes this operation and request_.prepare. (Pass no copy of that,
  // because a copy would be gone when the request is submitted.) Returns what start() returns: true
  // suspends the coroutine, and false lets the coroutine continue (from chapter 08 on).
  bool await_suspend(std::coroutine_handle<> awaiting) {
    COURSE_TODO("07.2");
  }

  auto await_resume() const { return result_of(request_.prepare, request_.io.as_canceled(done_)); }

 private:
  // `self` is an io_awaiter: static_cast it to io_awaiter&. Keeps the completion in done_, for
  // await_resume(), even if it has an error. Then resumes continuation_. After that, `self` may be
  // gone. (running_coroutines, a mark of chapter 06, is not needed: run() has made one.)
  static void on_completion(io_operation& self, const completion& done) {
    assert((done.flags & IORING_CQE_F_MORE) == 0 &&
           "more completions follow, and would find the frame gone: co_await takes one");
    COURSE_TODO("07.2");
  }

  const io_request<Prepare>& request_;
  std::coroutine_handle<> continuation_;
  completion done_{.user_data = 0, .res = -ECANCELED, .flags = 0};  // until the kernel's comes
};

template <typename Prepare>
io_awaiter<Prepare> io_request<Prepare>::operator co_await() const noexcept {
  return io_awaiter<Prepare>{*this};
}

// ---- the same request with IOSQE_* flags, such as IOSQE_IO_LINK ----

template <typename Prepare>
struct prepare_with_flags {
  Prepare prepare;
  std::uint8_t flags;

  void operator()(::io_uring_sqe& sqe) const {
    prepare(sqe);
    sqe.flags |= flags;
  }
  auto result(const completion& done) const { return result_of(prepare, done); }
};

template <typename Prepare>
auto with_flags(const io_request<Prepare>& request, std::uint8_t flags) noexcept {
  return io_request{request.io, prepare_with_flags<Prepare>{request.prepare, flags}};
}

}  // namespace uring
