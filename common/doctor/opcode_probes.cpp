// SPDX-License-Identifier: MIT
// Operations that the kernel says it knows (IORING_REGISTER_PROBE): every one the course awaits.
#include <liburing.h>

#include <array>
#include <cerrno>
#include <memory>

#include "probe_error.hpp"
#include "probe_ring.hpp"
#include "probes.hpp"

namespace doctor {
namespace {

template <::io_uring_op Opcode>
void known() {
  probe_ring ring;
  const std::unique_ptr<::io_uring_probe, decltype(&::io_uring_free_probe)> answers{
      ::io_uring_get_probe_ring(ring.native()), &::io_uring_free_probe};
  if (!answers) throw probe_error{"io_uring_register PROBE failed"};
  if (::io_uring_opcode_supported(answers.get(), Opcode) == 0) {
    throw probe_error{"io_uring_register PROBE", EOPNOTSUPP};
  }
}

constexpr std::array opcode_features{
    feature{"op_nop", "opcodes", "5.1", "nothing", &known<IORING_OP_NOP>},
    feature{"op_readv", "opcodes", "5.1", "preadv2(2)", &known<IORING_OP_READV>},
    feature{"op_writev", "opcodes", "5.1", "pwritev2(2)", &known<IORING_OP_WRITEV>},
    feature{"op_read_fixed", "opcodes", "5.1", "a read into a registered buffer",
            &known<IORING_OP_READ_FIXED>},
    feature{"op_write_fixed", "opcodes", "5.1", "a write from a registered buffer",
            &known<IORING_OP_WRITE_FIXED>},
    feature{"op_fsync", "opcodes", "5.1", "fsync(2)", &known<IORING_OP_FSYNC>},
    feature{"op_poll_add", "opcodes", "5.1", "poll(2)", &known<IORING_OP_POLL_ADD>},
    feature{"op_poll_remove", "opcodes", "5.1", "the end of a poll", &known<IORING_OP_POLL_REMOVE>},
    feature{"op_sync_file_range", "opcodes", "5.2", "sync_file_range(2)",
            &known<IORING_OP_SYNC_FILE_RANGE>},
    feature{"op_sendmsg", "opcodes", "5.3", "sendmsg(2)", &known<IORING_OP_SENDMSG>},
    feature{"op_recvmsg", "opcodes", "5.3", "recvmsg(2)", &known<IORING_OP_RECVMSG>},
    feature{"op_timeout", "opcodes", "5.4", "a timer", &known<IORING_OP_TIMEOUT>},
    feature{"op_timeout_remove", "opcodes", "5.5", "the end of a timer",
            &known<IORING_OP_TIMEOUT_REMOVE>},
    feature{"op_accept", "opcodes", "5.5", "accept4(2)", &known<IORING_OP_ACCEPT>},
    feature{"op_async_cancel", "opcodes", "5.5", "the end of any request",
            &known<IORING_OP_ASYNC_CANCEL>},
    feature{"op_link_timeout", "opcodes", "5.5", "a timer for the request before it",
            &known<IORING_OP_LINK_TIMEOUT>},
    feature{"op_connect", "opcodes", "5.5", "connect(2)", &known<IORING_OP_CONNECT>},
    feature{"op_openat", "opcodes", "5.6", "openat(2)", &known<IORING_OP_OPENAT>},
    feature{"op_close", "opcodes", "5.6", "close(2)", &known<IORING_OP_CLOSE>},
    feature{"op_files_update", "opcodes", "5.6", "registered files, changed by a request",
            &known<IORING_OP_FILES_UPDATE>},
    feature{"op_statx", "opcodes", "5.6", "statx(2)", &known<IORING_OP_STATX>},
    feature{"op_read", "opcodes", "5.6", "pread(2)", &known<IORING_OP_READ>},
    feature{"op_write", "opcodes", "5.6", "pwrite(2)", &known<IORING_OP_WRITE>},
    feature{"op_send", "opcodes", "5.6", "send(2)", &known<IORING_OP_SEND>},
    feature{"op_recv", "opcodes", "5.6", "recv(2)", &known<IORING_OP_RECV>},
    feature{"op_splice", "opcodes", "5.7", "splice(2)", &known<IORING_OP_SPLICE>},
    feature{"op_provide_buffers", "opcodes", "5.7", "a legacy buffer group, filled",
            &known<IORING_OP_PROVIDE_BUFFERS>},
    feature{"op_remove_buffers", "opcodes", "5.7", "a legacy buffer group, emptied",
            &known<IORING_OP_REMOVE_BUFFERS>},
    feature{"op_tee", "opcodes", "5.8", "tee(2)", &known<IORING_OP_TEE>},
    feature{"op_shutdown", "opcodes", "5.11", "shutdown(2)", &known<IORING_OP_SHUTDOWN>},
    feature{"op_renameat", "opcodes", "5.11", "renameat2(2)", &known<IORING_OP_RENAMEAT>},
    feature{"op_unlinkat", "opcodes", "5.11", "unlinkat(2)", &known<IORING_OP_UNLINKAT>},
    feature{"op_mkdirat", "opcodes", "5.15", "mkdirat(2)", &known<IORING_OP_MKDIRAT>},
    feature{"op_symlinkat", "opcodes", "5.15", "symlinkat(2)", &known<IORING_OP_SYMLINKAT>},
    feature{"op_linkat", "opcodes", "5.15", "linkat(2)", &known<IORING_OP_LINKAT>},
    feature{"op_msg_ring", "opcodes", "5.18", "a completion for another ring",
            &known<IORING_OP_MSG_RING>},
    feature{"op_socket", "opcodes", "5.19", "socket(2)", &known<IORING_OP_SOCKET>},
    feature{"op_send_zc", "opcodes", "6.0", "send(2) without a copy", &known<IORING_OP_SEND_ZC>},
    feature{"op_sendmsg_zc", "opcodes", "6.1", "sendmsg(2) without a copy",
            &known<IORING_OP_SENDMSG_ZC>},
};

}  // namespace

std::span<const feature> opcode_probes() {
  return opcode_features;
}

}  // namespace doctor
