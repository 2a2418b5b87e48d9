// SPDX-License-Identifier: MIT
// What is asked of the kernel about files, so that a file that does not answer delays one client.
// Owns     nothing.
// Lifetime what is passed by reference, and the bytes, live until the request has completed.
// Threads  the one that runs the queue.
// Errors   the io_result's. -ECANCELED: the source was canceled, and the kernel could end the wait.
// Rule     the kernel tries a request first inside io_uring_enter, where FUSE waits for its daemon,
//          and all clients of this thread with it. With IOSQE_ASYNC a thread of the kernel waits
//          instead. A read of a disk never waits inside, and one of cached pages completes there.
//          Not bounded: a wait that no signal interrupts, such as for a daemon that has taken the
//          request and ignores FUSE_INTERRUPT. It keeps its client, and a thread of the kernel,
//          until the daemon answers or is gone. If kernel_threads_max opens wait, no other file
//          can be opened: it is answered with 503 at its time limit, or comes from the cache. A
//          close() is no request: FUSE's daemon has to answer it, and delays all if it does not.
// See      io_uring_sqe_set_flags(3), io_uring_register_iowq_max_workers(3)
#pragma once

#include <liburing.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "errors.hpp"
#include "file_operations.hpp"
#include "io_queue.hpp"
#include "io_request.hpp"
#include "site_root.hpp"

namespace uring::http {

// For opens, and as many for reads, of each thread of ours. The kernel starts only as many as wait
// at the same time. Its own limit is four for each processor, and nearly none for reads.
inline constexpr unsigned kernel_threads_max = 64;

// Call it on the thread that submits.
inline void allow_kernel_threads(io_queue& queue) {
  std::array<unsigned, 2> limits{kernel_threads_max, kernel_threads_max};
  const int result = ::io_uring_register_iowq_max_workers(&queue.handle(), limits.data());
  if (result < 0) common::throw_error(result, "io_uring_register_iowq_max_workers");
}

// No file system is known yet, so it may be any.
inline auto openat2_op(const io_handle& io, int folder, const char* path, ::open_how& how) {
  return with_flags(
      io_request{io, [=, to = &how](
                         ::io_uring_sqe& sqe) { ::io_uring_prep_openat2(&sqe, folder, path, to); }},
      IOSQE_ASYNC);
}

inline auto read_file_op(const io_handle& io, const found_file& file, std::span<std::byte> into,
                         std::uint64_t offset) {
  const std::uint8_t flags = file.facts.is_on_disk ? 0 : IOSQE_ASYNC;
  return with_flags(read_op(io, file.fd.get(), into, offset), flags);
}

}  // namespace uring::http
