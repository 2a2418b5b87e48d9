// SPDX-License-Identifier: MIT
// The operations that open, close, describe and name files, each named like its call. A co_await
// gives an io_result.
// Owns     nothing; a new descriptor in a result is the caller's.
// Lifetime descriptors, paths and structures must live until co_await has returned.
// Threads  the one that runs the queue.
// Errors   the io_result's; see io_request.hpp.
// Rule     a path without a leading slash is looked up in `folder`: a descriptor or AT_FDCWD.
// See      io_uring_prep_openat(3), io_uring_prep_statx(3) and the like
#pragma once

#include <fcntl.h>
#include <liburing.h>
#include <sys/stat.h>

#include <cstdint>

#include "io_request.hpp"

namespace uring {

// ---- a file ----

// Completes with a descriptor that is closed on exec.
inline auto openat_op(const io_handle& io, int folder, const char* path, int flags,
                      ::mode_t mode = 0) {
  return io_request{io, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_openat(&sqe, folder, path, flags | O_CLOEXEC, mode);
                    }};
}

// This frees the descriptor's number. The file stays open while another request uses it.
inline auto close_op(const io_handle& io, int fd) {
  return io_request{io, [=](::io_uring_sqe& sqe) { ::io_uring_prep_close(&sqe, fd); }};
}

// `flags` may be IORING_FSYNC_DATASYNC.
inline auto fsync_op(const io_handle& io, int fd, unsigned flags = 0) {
  return io_request{io, [=](::io_uring_sqe& sqe) { ::io_uring_prep_fsync(&sqe, fd, flags); }};
}

// Like sync_file_range(2): if `bytes` is 0, it means all bytes from `offset` on.
inline auto sync_file_range_op(const io_handle& io, int fd, unsigned bytes, std::uint64_t offset,
                               int flags) {
  return io_request{io, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_sync_file_range(&sqe, fd, bytes, offset, flags);
                    }};
}

// `mask` is STATX_SIZE, for example. The kernel fills in `into` before this completes.
inline auto statx_op(const io_handle& io, int folder, const char* path, int flags, unsigned mask,
                     struct ::statx& into) {
  return io_request{io, [=, to = &into](::io_uring_sqe& sqe) {
                      ::io_uring_prep_statx(&sqe, folder, path, flags, mask, to);
                    }};
}

// ---- names ----

inline auto renameat_op(const io_handle& io, int old_folder, const char* old_path, int new_folder,
                        const char* new_path, unsigned flags = 0) {
  return io_request{io, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_renameat(&sqe, old_folder, old_path, new_folder, new_path,
                                               flags);
                    }};
}

inline auto mkdirat_op(const io_handle& io, int folder, const char* path, ::mode_t mode) {
  return io_request{
      io, [=](::io_uring_sqe& sqe) { ::io_uring_prep_mkdirat(&sqe, folder, path, mode); }};
}

inline auto symlinkat_op(const io_handle& io, const char* target, int folder, const char* path) {
  return io_request{
      io, [=](::io_uring_sqe& sqe) { ::io_uring_prep_symlinkat(&sqe, target, folder, path); }};
}

inline auto linkat_op(const io_handle& io, int old_folder, const char* old_path, int new_folder,
                      const char* new_path, int flags = 0) {
  return io_request{io, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_linkat(&sqe, old_folder, old_path, new_folder, new_path,
                                             flags);
                    }};
}

// `flags` may be AT_REMOVEDIR.
inline auto unlinkat_op(const io_handle& io, int folder, const char* path, int flags = 0) {
  return io_request{
      io, [=](::io_uring_sqe& sqe) { ::io_uring_prep_unlinkat(&sqe, folder, path, flags); }};
}

}  // namespace uring
