// SPDX-License-Identifier: MIT
// A kernel that refuses io_uring, room in epoll, or a socket's calls to one thread.
// Lifetime the filter stays until its thread has ended; programs that the thread starts inherit it.
// Threads  only the calling one is filtered, so call it in a thread or in a child of your own.
// Errors   std::system_error if the kernel refuses the filter.
// See      seccomp(2)
#pragma once

namespace course_test {

// From here on io_uring_setup fails with `error` in this thread, as under a container's profile.
void refuse_io_uring_setup(int error);

// The same for io_uring_enter: what the kernel says when it has no memory for a request (EAGAIN),
// or when a signal comes (EINTR), without having to bring that about.
void refuse_io_uring_enter(int error);

// The same for one opcode of io_uring_register, as on a kernel that does not have it.
void refuse_io_uring_register(unsigned opcode, int error);

// The same for one operation of epoll_ctl: with ENOSPC, no descriptor more can be watched.
void refuse_epoll_ctl(int operation, int error);

// The same for listen: with EADDRINUSE, another socket listens on the port since our bind.
void refuse_listen(int error);

// The same for send and recv: with ENOBUFS, the kernel has no memory for the bytes; with ETIMEDOUT,
// the network of the peer is gone.
void refuse_send(int error);
void refuse_recv(int error);

// The same for the socket options of one level, and for one command of fcntl.
void refuse_setsockopt(int level, int error);
void refuse_fcntl(int command, int error);

}  // namespace course_test
