// SPDX-License-Identifier: MIT
// A small ring for one try: prepare, submit, wait with a deadline.
// Owns     the ring; its requests end with it.
// Lifetime buffers given to prepare() outlive the ring: declare them before it.
// Threads  the one that made it.
// Errors   probe_error, also for a completion that does not come in time.
// Rule     a completion is copied out and the queue advanced before a probe looks at it.
// See      io_uring_setup(2), io_uring_enter(2)
#pragma once

#include <liburing.h>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace doctor {

static_assert(offsetof(io_uring_buf_ring, bufs) == 0,
              "include <liburing.h> before any <linux/io_uring.h>: that one's layout is wrong");

struct completion {
  std::uint64_t user_data = 0;
  int res = 0;
  std::uint32_t flags = 0;
};

struct ring_shape {
  unsigned flags = 0;
  unsigned sq_entries = 8;
  unsigned cq_entries = 0;  // taken with IORING_SETUP_CQSIZE
  unsigned wq_fd = 0;       // taken with IORING_SETUP_ATTACH_WQ
};

class probe_ring {
 public:
  explicit probe_ring(const ring_shape& shape = {});
  probe_ring(probe_ring&&) = delete;  // liburing keeps pointers into the mapping
  ~probe_ring();

  [[nodiscard]] ::io_uring* native() noexcept { return &ring_; }
  [[nodiscard]] int fd() const noexcept { return ring_.ring_fd; }
  [[nodiscard]] unsigned features() const noexcept { return ring_.features; }

  // prepare(7, io_uring_prep_recv, fd, buffer, bytes, 0).flags |= IOSQE_IO_LINK;
  template <typename... Parameters>
  ::io_uring_sqe& prepare(std::uint64_t user_data, void (*fill)(::io_uring_sqe*, Parameters...),
                          std::type_identity_t<Parameters>... arguments) {
    ::io_uring_sqe* const sqe = ::io_uring_get_sqe(&ring_);
    assert(sqe != nullptr && "a try prepares less than sq_entries before it submits");
    fill(sqe, arguments...);
    ::io_uring_sqe_set_data64(sqe, user_data);  // last: fill() may clear it in old liburings
    return *sqe;
  }

  void submit();
  // The next completion, of whatever request.
  [[nodiscard]] completion wait();
  // Submits, waits for one completion, and throws if its result is an error.
  completion finish(std::string_view tried);

 private:
  ::io_uring ring_{};
};

}  // namespace doctor
