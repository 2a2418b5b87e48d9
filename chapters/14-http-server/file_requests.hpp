// SPDX-License-Identifier: MIT
// Requests that open and read files, made so that a file system that does not answer delays only
// the clients that ask for its files.
// Owns     nothing.
// Lifetime what is passed by reference, and the bytes, must live until the request has completed.
// Threads  the one that runs the queue.
// Errors   the result is an io_result. It is -ECANCELED if the source was canceled and the kernel
//          could end the wait.
// Rule     the kernel tries a request first inside io_uring_enter. For a FUSE file system it waits
//          there for the daemon, and all clients of this thread wait with it. With IOSQE_ASYNC a
//          thread of the kernel waits instead. Reads of a disk do not need that flag: they never
//          wait inside, and a read of cached pages completes there.
//          A wait that no signal interrupts has no time limit: for example, if a daemon has taken
//          the request and ignores FUSE_INTERRUPT. The client and a thread of the kernel then wait
//          until the daemon answers or is gone. If kernel_threads_max opens wait, no other file
//          can be opened: a request for a file not in the cache gets 503 at its time limit.
//          close() is a system call here. FUSE's daemon has to answer it, too, and all clients of
//          this thread wait until the daemon does.
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

// The limit of kernel threads for the opens of one of our threads, and again for its reads. The
// kernel starts only as many threads as requests wait at the same time. Without the call below,
// opens get at most four threads for each processor, and reads almost any number.
inline constexpr unsigned kernel_threads_max = 64;

// Call it on the thread that submits.
inline void allow_kernel_threads(io_queue& queue) {
  std::array<unsigned, 2> limits{kernel_threads_max, kernel_threads_max};
  const int result = ::io_uring_register_iowq_max_workers(&queue.handle(), limits.data());
  if (result < 0) common::throw_error(result, "io_uring_register_iowq_max_workers");
}

// IOSQE_ASYNC, because before the open we do not know whether the file system is FUSE.
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
