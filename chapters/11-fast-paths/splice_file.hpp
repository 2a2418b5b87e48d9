// SPDX-License-Identifier: MIT
// Sends a file to a socket through a pipe, with splice. The bytes never enter the program's memory.
// Owns     both ends of the pipe.
// Lifetime the descriptors and the pipe must live until the task has ended.
// Threads  the one that runs the queue. Each splice occupies a thread of the kernel while it waits.
// Errors   std::system_error; std::runtime_error if the file ends before the part does. Either way
//          the pipe may still hold bytes, and must not be used for another client.
// Rule     splice(2) needs a pipe on one side. Bytes that have gone in have to come out before more
//          go in, because a splice into a full pipe waits for a reader, and we are the only one.
// See      splice(2), io_uring_prep_splice(3), pipe(7)
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "errors.hpp"
#include "file_extents.hpp"
#include "file_operations.hpp"
#include "io_request.hpp"
#include "registered_files.hpp"
#include "task.hpp"
#include "todo.hpp"
#include "unique_fd.hpp"

namespace uring {

class splice_pipe {
 public:
  // Asks the kernel for this much room. The pipe may get less, because the kernel limits the total
  // room of all pipes of a user. Call room() to find out how much the pipe has got.
  explicit splice_pipe(std::size_t room_wanted) {
    std::array<int, 2> fds{};
    common::check(::pipe2(fds.data(), O_CLOEXEC), "pipe2");
    read_end_ = common::unique_fd{fds[0]};
    write_end_ = common::unique_fd{fds[1]};
    (void)::fcntl(fds[0], F_SETPIPE_SZ, static_cast<int>(room_wanted));
    const int room = common::check(::fcntl(fds[0], F_GETPIPE_SZ), "fcntl F_GETPIPE_SZ");
    room_ = static_cast<std::size_t>(room);
  }

  [[nodiscard]] int read_end() const noexcept { return read_end_.get(); }
  [[nodiscard]] int write_end() const noexcept { return write_end_.get(); }
  [[nodiscard]] std::size_t room() const noexcept { return room_; }  // of an empty one

 private:
  common::unique_fd read_end_;
  common::unique_fd write_end_;
  std::size_t room_ = 0;
};

// From a file, registered or not, into a pipe. IOSQE_FIXED_FILE would apply to the pipe, because
// the side that a splice takes from has a flag of its own.
inline auto splice_in_op(const io_handle& io, const file_ref& file, std::uint64_t offset,
                         const splice_pipe& pipe, std::size_t bytes) {
  const bool is_fixed = (file.flags & IOSQE_FIXED_FILE) != 0;
  return splice_op(io, file.number, static_cast<std::int64_t>(offset), pipe.write_end(), -1,
                   static_cast<unsigned>(bytes), is_fixed ? SPLICE_F_FD_IN_FIXED : 0);
}

// Out of a pipe, into a socket.
inline auto splice_out_op(const io_handle& io, const splice_pipe& pipe, int socket,
                          std::size_t bytes) {
  return splice_op(io, pipe.read_end(), -1, socket, -1, static_cast<unsigned>(bytes));
}

[[noreturn]] inline void throw_became_shorter(std::uint64_t at) {
  throw std::runtime_error{"the file has become shorter: nothing is left at byte " +
                           std::to_string(at)};
}

// Sends all of `part`, in pieces of at most pipe.room() bytes. Await splice_in_op() to move a piece
// into the pipe, and splice_out_op() to move bytes from the pipe to the socket. All bytes that went
// in must come out before the next piece goes in. The result of each splice is the number of bytes
// that it moved, which may be fewer than you asked for. If a result is_passing(), await the same
// splice again. Throw any other failure, with or_throw("splice from the file") or
// or_throw("splice to the socket"). A splice_in_op() that moves 0 bytes has found the end of the
// file: call throw_became_shorter() with the offset of the first byte that is missing.
inline task<> splice_file(io_handle io, file_ref file, extent part, const splice_pipe& pipe,
                          int socket) {
  COURSE_TODO("11.4");
}

}  // namespace uring
