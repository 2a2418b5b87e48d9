// SPDX-License-Identifier: MIT
// The operations that move bytes of files and pipes, each named like its call. A co_await gives an
// io_result. Operations that open, name and describe files are in path_operations.hpp.
// Lifetime descriptors, buffers and iovecs must live until co_await has returned.
// Threads  the one that runs the queue.
// Errors   the io_result's; see io_request.hpp.
// Rule     offsets and counts are bytes. A transfer may be short: go on where it stopped. At
//          current_position the kernel uses, and moves, the descriptor's own offset. Pipes and
//          terminals need current_position.
// See      io_uring_prep_read(3), io_uring_prep_splice(3) and the like
#pragma once

#include <liburing.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "io_request.hpp"
#include "registered_buffers.hpp"

namespace uring {

inline constexpr std::uint64_t current_position = ~std::uint64_t{0};

// Completes with a count of bytes; 0 is the end of the file.
inline auto read_op(const io_handle& io, int fd, std::span<std::byte> into,
                    std::uint64_t offset = current_position) {
  return io_request{io, [=, into = transferable(into)](::io_uring_sqe& sqe) {
                      ::io_uring_prep_read(&sqe, fd, into.data(),
                                           static_cast<unsigned>(into.size()), offset);
                    }};
}

// If the reader of a pipe or socket is gone, this also raises SIGPIPE. program_main() ignores it.
inline auto write_op(const io_handle& io, int fd, std::span<const std::byte> data,
                     std::uint64_t offset = current_position) {
  return io_request{io, [=, data = transferable(data)](::io_uring_sqe& sqe) {
                      ::io_uring_prep_write(&sqe, fd, data.data(),
                                            static_cast<unsigned>(data.size()), offset);
                    }};
}

// Makes an iovec: readv_op and writev_op take many of them.
[[nodiscard]] inline ::iovec to_iovec(std::span<std::byte> bytes) noexcept {
  return {.iov_base = bytes.data(), .iov_len = bytes.size()};
}

inline auto readv_op(const io_handle& io, int fd, std::span<const ::iovec> into,
                     std::uint64_t offset = current_position) {
  return io_request{io, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_readv(&sqe, fd, into.data(),
                                            static_cast<unsigned>(into.size()), offset);
                    }};
}

inline auto writev_op(const io_handle& io, int fd, std::span<const ::iovec> data,
                      std::uint64_t offset = current_position) {
  return io_request{io, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_writev(&sqe, fd, data.data(),
                                             static_cast<unsigned>(data.size()), offset);
                    }};
}

inline auto read_fixed_op(const io_handle& io, int fd, const fixed_buffer& into,
                          std::uint64_t offset = current_position) {
  return io_request{
      io, [=, bytes = transferable(into.bytes), index = into.index](::io_uring_sqe& sqe) {
        ::io_uring_prep_read_fixed(&sqe, fd, bytes.data(), static_cast<unsigned>(bytes.size()),
                                   offset, index);
      }};
}

inline auto write_fixed_op(const io_handle& io, int fd, const fixed_buffer& data,
                           std::uint64_t offset = current_position) {
  return io_request{
      io, [=, bytes = transferable(data.bytes), index = data.index](::io_uring_sqe& sqe) {
        ::io_uring_prep_write_fixed(&sqe, fd, bytes.data(), static_cast<unsigned>(bytes.size()),
                                    offset, index);
      }};
}

// Moves bytes between two descriptors, one of which must be a pipe. A pipe's offset must be -1.
inline auto splice_op(const io_handle& io, int from, std::int64_t from_offset, int to,
                      std::int64_t to_offset, unsigned bytes, unsigned flags = 0) {
  return io_request{io, [=](::io_uring_sqe& sqe) {
                      ::io_uring_prep_splice(&sqe, from, from_offset, to, to_offset, bytes, flags);
                    }};
}

// Copies bytes from one pipe to another, and leaves them in the first.
inline auto tee_op(const io_handle& io, int from, int to, unsigned bytes, unsigned flags = 0) {
  return io_request{
      io, [=](::io_uring_sqe& sqe) { ::io_uring_prep_tee(&sqe, from, to, bytes, flags); }};
}

}  // namespace uring
