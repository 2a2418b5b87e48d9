// SPDX-License-Identifier: MIT
// The kernel's structures, in the one header that is right in C++: SQE, CQE, params, flags.
// Rule     never <linux/io_uring.h>: on Debian 12 it lays out io_uring_buf_ring wrongly in C++.
// See      io_uring(7)
#pragma once

#include <liburing/compat.h>  // __kernel_timespec, which the next header needs
#include <liburing/io_uring.h>

#include <cstddef>

static_assert(offsetof(::io_uring_buf_ring, bufs) == 0, "<linux/io_uring.h> came first");
static_assert(sizeof(::io_uring_sqe) == 64 && sizeof(::io_uring_cqe) == 16);
