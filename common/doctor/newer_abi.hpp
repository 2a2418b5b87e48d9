// SPDX-License-Identifier: MIT
// The part of io_uring's interface that liburing 2.3, the course's floor, does not know yet.
// Errors   none; a kernel that lacks one of these answers -EINVAL.
// Rule     names of our own: in a newer liburing the official ones are macros or enumerators, and
//          #ifdef cannot see an enumerator. The numbers are the kernel's and never change.
// See      liburing's src/include/liburing/io_uring.h
#pragma once

#include <cstdint>

namespace doctor::abi {

constexpr unsigned setup_no_sqarray = 1U << 16;             // IORING_SETUP_NO_SQARRAY
constexpr unsigned feature_recvsend_bundle = 1U << 14;      // IORING_FEAT_RECVSEND_BUNDLE
constexpr unsigned feature_min_timeout = 1U << 15;          // IORING_FEAT_MIN_TIMEOUT
constexpr unsigned recvsend_bundle = 1U << 4;               // IORING_RECVSEND_BUNDLE
constexpr unsigned cqe_buffer_more = 1U << 4;               // IORING_CQE_F_BUF_MORE
constexpr unsigned register_resize_rings = 33;              // IORING_REGISTER_RESIZE_RINGS
constexpr std::uint16_t buffer_ring_incremental = 1U << 1;  // IOU_PBUF_RING_INC

// struct io_uring_buf_reg, whose `flags` liburing 2.3 calls padding.
struct buffer_ring_registration {
  std::uint64_t ring_addr = 0;
  std::uint32_t ring_entries = 0;
  std::uint16_t group_id = 0;
  std::uint16_t flags = 0;
  std::uint64_t reserved[3] = {};
};
static_assert(sizeof(buffer_ring_registration) == 40);

// struct io_uring_getevents_arg, whose `min_wait_usec` liburing 2.3 calls padding.
struct wait_arguments {
  std::uint64_t sigmask = 0;
  std::uint32_t sigmask_bytes = 0;
  std::uint32_t min_wait_us = 0;
  std::uint64_t timeout = 0;  // address of a __kernel_timespec
};
static_assert(sizeof(wait_arguments) == 24);

}  // namespace doctor::abi
