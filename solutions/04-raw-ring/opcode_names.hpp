// SPDX-License-Identifier: MIT
// Names for the kernel's numbers: for opcodes, and for the feature bits of a ring.
// Lifetime the names are literals.
// Errors   none: a number that is newer than these lists gives a text such as "opcode 99".
// Rule     the numbers are the kernel's interface and never change, so a name stays right.
// See      io_uring_enter(2), io_uring_setup(2)
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace uring {

// By opcode, from 0.
inline constexpr auto opcode_names = std::to_array<std::string_view>({
    "NOP",
    "READV",
    "WRITEV",
    "FSYNC",
    "READ_FIXED",
    "WRITE_FIXED",
    "POLL_ADD",
    "POLL_REMOVE",
    "SYNC_FILE_RANGE",
    "SENDMSG",
    "RECVMSG",
    "TIMEOUT",
    "TIMEOUT_REMOVE",
    "ACCEPT",
    "ASYNC_CANCEL",
    "LINK_TIMEOUT",
    "CONNECT",
    "FALLOCATE",
    "OPENAT",
    "CLOSE",
    "FILES_UPDATE",
    "STATX",
    "READ",
    "WRITE",
    "FADVISE",
    "MADVISE",
    "SEND",
    "RECV",
    "OPENAT2",
    "EPOLL_CTL",
    "SPLICE",
    "PROVIDE_BUFFERS",
    "REMOVE_BUFFERS",
    "TEE",
    "SHUTDOWN",
    "RENAMEAT",
    "UNLINKAT",
    "MKDIRAT",
    "SYMLINKAT",
    "LINKAT",
    "MSG_RING",
    "FSETXATTR",
    "SETXATTR",
    "FGETXATTR",
    "GETXATTR",
    "SOCKET",
    "URING_CMD",
    "SEND_ZC",
    "SENDMSG_ZC",
    "READ_MULTISHOT",
    "WAITID",
    "FUTEX_WAIT",
    "FUTEX_WAKE",
    "FUTEX_WAITV",
    "FIXED_FD_INSTALL",
    "FTRUNCATE",
    "BIND",
    "LISTEN",
    "RECV_ZC",
    "EPOLL_WAIT",
    "READV_FIXED",
    "WRITEV_FIXED",
    "PIPE",
});

// By bit, from 1U << 0.
inline constexpr auto feature_names = std::to_array<std::string_view>({
    "SINGLE_MMAP",
    "NODROP",
    "SUBMIT_STABLE",
    "RW_CUR_POS",
    "CUR_PERSONALITY",
    "FAST_POLL",
    "POLL_32BITS",
    "SQPOLL_NONFIXED",
    "EXT_ARG",
    "NATIVE_WORKERS",
    "RSRC_TAGS",
    "CQE_SKIP",
    "LINKED_FILE",
    "REG_REG_RING",
    "RECVSEND_BUNDLE",
    "MIN_TIMEOUT",
    "RW_ATTR",
    "NO_IOWAIT",
});

[[nodiscard]] inline std::string opcode_name(unsigned opcode) {
  if (opcode < opcode_names.size()) return std::string{opcode_names[opcode]};
  return "opcode " + std::to_string(opcode);
}

[[nodiscard]] inline std::string feature_name(unsigned bit) {
  if (bit < feature_names.size()) return std::string{feature_names[bit]};
  return "bit " + std::to_string(bit);
}

}  // namespace uring
