// SPDX-License-Identifier: MIT
// The operations on files, pipes and folders, each named like its call: co_await gives an
// io_result.
// Owns     nothing; a new descriptor in a result is the caller's.
// Lifetime descriptors, buffers, paths and structures must live until co_await has returned.
// Threads  the one that runs `context`.
// Errors   the io_result's; see io_request.hpp.
// Rule     offsets and counts are bytes. A transfer may be short: go on where it stopped. At
//          current_position the kernel uses, and moves, the descriptor's own offset, which is also
//          what pipes and terminals need.
// See      io_uring_prep_read(3), io_uring_prep_openat(3), io_uring_prep_splice(3) and their kin
#pragma once

#include <fcntl.h>
#include <liburing.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "io_request.hpp"
#include "registered_buffer.hpp"

namespace uring {

inline constexpr std::uint64_t current_position = ~std::uint64_t{0};

// ---- bytes ----

// Completes with a count of bytes; 0 is the end of the file.
inline auto read_op(io_context& context, int fd, std::span<std::byte> into,
                    std::uint64_t offset = current_position) {
  return io_request{context, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_read(&sqe, fd, into.data(),
                                           static_cast<unsigned>(into.size()), offset);
                    }};
}

// To a pipe or socket whose reader is gone it raises SIGPIPE as well: program_main() ignores that.
inline auto write_op(io_context& context, int fd, std::span<const std::byte> data,
                     std::uint64_t offset = current_position) {
  return io_request{context, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_write(&sqe, fd, data.data(),
                                            static_cast<unsigned>(data.size()), offset);
                    }};
}

// For readv_op and writev_op, which take many of them.
[[nodiscard]] inline ::iovec to_iovec(std::span<std::byte> bytes) noexcept {
  return {.iov_base = bytes.data(), .iov_len = bytes.size()};
}

inline auto readv_op(io_context& context, int fd, std::span<const ::iovec> into,
                     std::uint64_t offset = current_position) {
  return io_request{context, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_readv(&sqe, fd, into.data(),
                                            static_cast<unsigned>(into.size()), offset);
                    }};
}

inline auto writev_op(io_context& context, int fd, std::span<const ::iovec> data,
                      std::uint64_t offset = current_position) {
  return io_request{context, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_writev(&sqe, fd, data.data(),
                                             static_cast<unsigned>(data.size()), offset);
                    }};
}

// `into` lies in the registered buffer.
inline auto read_fixed_op(io_context& context, int fd, std::span<std::byte> into,
                          std::uint64_t offset = current_position) {
  return io_request{context, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_read_fixed(&sqe, fd, into.data(),
                                                 static_cast<unsigned>(into.size()), offset,
                                                 registered_buffer::index);
                    }};
}

inline auto write_fixed_op(io_context& context, int fd, std::span<const std::byte> data,
                           std::uint64_t offset = current_position) {
  return io_request{context, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_write_fixed(&sqe, fd, data.data(),
                                                  static_cast<unsigned>(data.size()), offset,
                                                  registered_buffer::index);
                    }};
}

// Moves bytes from one descriptor to another, of which one is a pipe; -1 is a pipe's offset.
inline auto splice_op(io_context& context, int from, std::int64_t from_offset, int to,
                      std::int64_t to_offset, unsigned bytes, unsigned flags = 0) {
  return io_request{context, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_splice(&sqe, from, from_offset, to, to_offset, bytes, flags);
                    }};
}

// Copies bytes from one pipe to another, and leaves them in the first.
inline auto tee_op(io_context& context, int from, int to, unsigned bytes, unsigned flags = 0) {
  return io_request{
      context, [=](::io_uring_sqe& sqe) { ::io_uring_prep_tee(&sqe, from, to, bytes, flags); }};
}

// ---- a file ----

// Completes with a descriptor, closed on exec.
inline auto openat_op(io_context& context, int folder, const char* path, int flags,
                      ::mode_t mode = 0) {
  return io_request{context, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_openat(&sqe, folder, path, flags | O_CLOEXEC, mode);
                    }};
}

// The number is free when it has completed; so is not what another request has open.
inline auto close_op(io_context& context, int fd) {
  return io_request{context, [=](::io_uring_sqe& sqe) { ::io_uring_prep_close(&sqe, fd); }};
}

// `flags` may be IORING_FSYNC_DATASYNC.
inline auto fsync_op(io_context& context, int fd, unsigned flags = 0) {
  return io_request{context, [=](::io_uring_sqe& sqe) { ::io_uring_prep_fsync(&sqe, fd, flags); }};
}

// As sync_file_range(2): 0 bytes are all from `offset` on.
inline auto sync_file_range_op(io_context& context, int fd, unsigned bytes, std::uint64_t offset,
                               int flags) {
  return io_request{context, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_sync_file_range(&sqe, fd, bytes, offset, flags);
                    }};
}

// `mask` as STATX_SIZE; `into` is filled in when it has completed.
inline auto statx_op(io_context& context, int folder, const char* path, int flags, unsigned mask,
                     struct ::statx& into) {
  return io_request{context, [=, to = &into](::io_uring_sqe& sqe) {
                      ::io_uring_prep_statx(&sqe, folder, path, flags, mask, to);
                    }};
}

// ---- names ----

inline auto renameat_op(io_context& context, int old_folder, const char* old_path, int new_folder,
                        const char* new_path, unsigned flags = 0) {
  return io_request{context, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_renameat(&sqe, old_folder, old_path, new_folder, new_path,
                                               flags);
                    }};
}

inline auto mkdirat_op(io_context& context, int folder, const char* path, ::mode_t mode) {
  return io_request{
      context, [=](::io_uring_sqe& sqe) { ::io_uring_prep_mkdirat(&sqe, folder, path, mode); }};
}

inline auto symlinkat_op(io_context& context, const char* target, int folder, const char* path) {
  return io_request{
      context, [=](::io_uring_sqe& sqe) { ::io_uring_prep_symlinkat(&sqe, target, folder, path); }};
}

inline auto linkat_op(io_context& context, int old_folder, const char* old_path, int new_folder,
                      const char* new_path, int flags = 0) {
  return io_request{context, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_linkat(&sqe, old_folder, old_path, new_folder, new_path,
                                             flags);
                    }};
}

// `flags` may be AT_REMOVEDIR.
inline auto unlinkat_op(io_context& context, int folder, const char* path, int flags = 0) {
  return io_request{
      context, [=](::io_uring_sqe& sqe) { ::io_uring_prep_unlinkat(&sqe, folder, path, flags); }};
}

}  // namespace uring
