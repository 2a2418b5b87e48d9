// SPDX-License-Identifier: MIT
// A send for which the kernel makes no copy of the bytes. It has up to two completions: its result,
// and a notification that the kernel does not need the bytes any more.
// Lifetime it lives in the awaiting frame. The bytes must live, unchanged, until the last
//          completion, which resumes the frame.
// Threads  the one that runs the queue.
// Errors   zero_copy_sent::result: ENOMEM beyond RLIMIT_MEMLOCK, EOPNOTSUPP if the socket cannot do
//          it. A notification may follow an error, too.
// Rule     the notification comes when the peer's kernel has the bytes. If the peer's socket is
//          full, the peer has to read first. A cancel, shutdown or close does not bring the
//          notification; reset_connection() does. Never link such a send behind another request: if
//          the chain breaks, Linux 6.18 completes the send with ECANCELED and without F_MORE, but
//          the notification still follows.
// See      io_uring_prep_send_zc(3), io_uring_enter(2): IORING_OP_SEND_ZC
#pragma once

#include <liburing.h>
#include <sys/socket.h>

#include <cerrno>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "io_operation.hpp"
#include "io_request.hpp"
#include "registered_buffers.hpp"
#include "task.hpp"
#include "todo.hpp"

namespace uring {

// Makes the notification say whether the bytes were copied after all, as on loopback. This flag
// needs Linux 6.2: before that, a send with it ends with -EINVAL. liburing 2.4 names both bits.
inline constexpr unsigned report_usage = 1U << 3;
inline constexpr std::uint32_t usage_copied = 1U << 31;

struct [[nodiscard]] zero_copy_sent {
  io_result result;  // how many bytes, which may be a part
  bool was_copied;   // with report_usage; otherwise false
};

// The bytes, and the registered buffer that holds them, if any: its pages need no pinning.
struct prepare_send_zc {
  int fd;
  std::span<const std::byte> data;
  std::optional<unsigned> buffer_index;
  unsigned zero_copy_flags;

  void operator()(::io_uring_sqe& sqe) const {
    if (buffer_index.has_value()) {
      ::io_uring_prep_send_zc_fixed(&sqe, fd, data.data(), data.size(), MSG_NOSIGNAL,
                                    zero_copy_flags, *buffer_index);
    } else {
      ::io_uring_prep_send_zc(&sqe, fd, data.data(), data.size(), MSG_NOSIGNAL, zero_copy_flags);
    }
  }
};

class [[nodiscard("submitted when awaited")]] send_zc_op : io_operation {
 public:
  send_zc_op(const io_handle& io, int fd, std::span<const std::byte> data,
             unsigned zero_copy_flags = 0) noexcept
      : io_operation{&on_completion},
        io_{io},
        prepare_{fd, transferable(data), std::nullopt, zero_copy_flags} {}

  // Sends from a registered buffer, or from a part of one.
  send_zc_op(const io_handle& io, int fd, const fixed_buffer& data,
             unsigned zero_copy_flags = 0) noexcept
      : io_operation{&on_completion},
        io_{io},
        prepare_{fd, transferable(std::span<const std::byte>{data.bytes}),
                 static_cast<unsigned>(data.index), zero_copy_flags} {}

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> awaiting) {
    continuation_ = awaiting;
    return io_.start(*this, prepare_);
  }
  zero_copy_sent await_resume() const {
    return {.result = io_result{io_.as_canceled(sent_).res}, .was_copied = was_copied_};
  }

 private:
  // `self` is a send_zc_op. One completion comes, or two. If a completion has IORING_CQE_F_NOTIF,
  // it is the notification. Its res is not a count: with report_usage it may have the bit
  // usage_copied, otherwise it is 0. Keep in was_copied_ whether it has this bit. Every other
  // completion is the send's own, with a count of bytes or an error: keep it in sent_. Only the
  // last completion, whichever of the two it is, resumes continuation_. `self` may be gone then.
  static void on_completion(io_operation& self, const completion& done) {
    // --8<-- [start:task-11-5]
    auto& send = static_cast<send_zc_op&>(self);
    if ((done.flags & IORING_CQE_F_NOTIF) != 0) {
      send.was_copied_ = (static_cast<std::uint32_t>(done.res) & usage_copied) != 0;
    } else {
      send.sent_ = done;
    }
    if ((done.flags & IORING_CQE_F_MORE) == 0) send.continuation_.resume();
    // --8<-- [end:task-11-5]
  }

  io_handle io_;
  prepare_send_zc prepare_;
  std::coroutine_handle<> continuation_;
  completion sent_{.user_data = 0, .res = -ECANCELED, .flags = 0};  // until the send's own comes
  bool was_copied_ = false;
};
static_assert(std::is_trivially_destructible_v<send_zc_op>, "it may stand beside co_await");

// Sends all of `data`. The next send begins when the notification of the previous one has come.
inline task<> send_all_zc(io_handle io, int socket, std::span<const std::byte> data) {
  while (!data.empty()) {
    const zero_copy_sent sent = co_await send_zc_op{io, socket, data};
    if (!sent.result.is_passing()) data = data.subspan(sent.result.or_throw("send_zc"));
  }
}

}  // namespace uring
