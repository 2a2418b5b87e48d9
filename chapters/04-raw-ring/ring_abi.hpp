// SPDX-License-Identifier: MIT
// The kernel's structures and flags, from the one header that declares them correctly in C++.
// Rule     never include <linux/io_uring.h>: in Debian 12 it has a wrong io_uring_buf_ring for C++.
// See      io_uring(7)
#pragma once

#include <liburing/compat.h>  // __kernel_timespec, which the next header needs
#include <liburing/io_uring.h>

#include <cstddef>

static_assert(offsetof(::io_uring_buf_ring, bufs) == 0, "<linux/io_uring.h> came first");
static_assert(sizeof(::io_uring_sqe) == 64 && sizeof(::io_uring_cqe) == 16);
