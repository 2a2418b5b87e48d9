// SPDX-License-Identifier: MIT
// Operations that open and close files in a table of registered_files only. Such a file
// has a direct descriptor: a slot, without a number that a system call could take.
// Owns     nothing; the slot holds the file.
// Lifetime the slot must live until co_await has returned.
// Threads  the one that runs the queue.
// Errors   the result is an io_result: EINVAL if the flags have O_CLOEXEC or SOCK_CLOEXEC, because
//          these belong to a descriptor's number, and a slot has none.
// Rule     we choose the slot, by reserve(). IORING_FILE_INDEX_ALLOC lets the kernel choose, but
//          with it liburing 2.3 prepares an ordinary openat(2), which uses no slot.
// See      io_uring_prep_accept_direct(3), io_uring_prep_openat_direct(3)
#pragma once

#include <liburing.h>
#include <sys/stat.h>

#include "io_request.hpp"
#include "registered_files.hpp"

namespace uring {

// A request that fills a slot. `open` prepares it.
template <typename Open>
struct prepare_into_slot {
  Open open;
  file_slot* into;

  void operator()(::io_uring_sqe& sqe) const { open(sqe, static_cast<unsigned>(into->index())); }
  io_result result(const completion& done) const {
    if (done.res >= 0) into->set_filled();
    return io_result{done.res};
  }
};

// Completes with 0 when a client's connection is in the slot.
inline auto accept_direct_op(const io_handle& io, int listener, file_slot& into) {
  const auto open = [=](::io_uring_sqe& sqe, unsigned slot) {
    ::io_uring_prep_accept_direct(&sqe, listener, nullptr, nullptr, 0, slot);
  };
  return io_request{io, prepare_into_slot<decltype(open)>{open, &into}};
}

// Completes with 0 when the file is in the slot.
inline auto openat_direct_op(const io_handle& io, int folder, const char* path, int flags,
                             file_slot& into, ::mode_t mode = 0) {
  const auto open = [=](::io_uring_sqe& sqe, unsigned slot) {
    ::io_uring_prep_openat_direct(&sqe, folder, path, flags, mode, slot);
  };
  return io_request{io, prepare_into_slot<decltype(open)>{open, &into}};
}

// Empties the slot by a request. A file_slot that still holds its file when it is destroyed costs a
// system call. The request names the slot in its own way: do not add IOSQE_FIXED_FILE.
struct prepare_close_direct {
  file_slot* slot;

  void operator()(::io_uring_sqe& sqe) const {
    ::io_uring_prep_close_direct(&sqe, static_cast<unsigned>(slot->index()));
  }
  io_result result(const completion& done) const {
    if (done.res >= 0) slot->set_empty();
    return io_result{done.res};
  }
};

inline auto close_direct_op(const io_handle& io, file_slot& slot) {
  return io_request{io, prepare_close_direct{&slot}};
}

}  // namespace uring
