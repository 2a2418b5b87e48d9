// SPDX-License-Identifier: MIT
// The table of all kinds of echo: a name for --kind, a description, and the function that runs it.
#pragma once

#include <liburing.h>

#include <array>
#include <string_view>

#include "buffer_pool.hpp"
#include "io_context.hpp"
#include "task.hpp"
#include "unique_fd.hpp"
#include "variant_client.hpp"
#include "variant_direct.hpp"
#include "variant_fixed.hpp"
#include "variant_kinds.hpp"
#include "variant_linked.hpp"
#include "variant_multishot.hpp"
#include "variant_splice.hpp"
#include "variant_zero_copy.hpp"

namespace uring {

struct variant {
  std::string_view name;
  std::string_view summary;
  ::io_uring_op newest;  // of the operations that it needs
  task<> (*serve)(io_context& context, common::unique_fd listener, int stop_fd,
                  buffer_options buffers);
};

inline constexpr std::array variants{
    variant{"recv-send", "RECV, then SEND", IORING_OP_RECV,
            &serve_variant<own_buffers, echo_recv_send>},
    variant{"recvmsg", "RECVMSG, then SENDMSG", IORING_OP_RECVMSG,
            &serve_variant<own_buffers, echo_recvmsg>},
    variant{"poll", "POLL_ADD, then RECV, then SEND", IORING_OP_POLL_ADD,
            &serve_variant<own_buffers, echo_after_poll>},
    variant{"poll-first", "RECV that waits before it tries, then SEND", IORING_OP_RECV,
            &serve_variant<own_buffers, echo_poll_first>},
    variant{"fixed", "READ_FIXED, then WRITE_FIXED", IORING_OP_WRITE_FIXED,
            &serve_variant<fixed_places, echo_fixed>},
    variant{"linked", "SEND, and linked to it the next RECV", IORING_OP_RECV,
            &serve_variant<own_buffers, echo_linked>},
    variant{"async", "RECV and SEND by the kernel's workers", IORING_OP_RECV,
            &serve_variant<own_buffers, echo_async>},
    variant{"splice", "SPLICE into a pipe, then out of it", IORING_OP_SPLICE,
            &serve_variant<own_buffers, echo_splice>},
    variant{"multishot", "one RECV for all messages, then SEND", IORING_OP_RECV, &serve_multishot},
    variant{"direct", "RECV and SEND on a socket without a descriptor", IORING_OP_RECV,
            &serve_variant<slots_and_own_buffers, echo_direct, direct_clients>},
    variant{"zero-copy", "RECV, then SEND_ZC", IORING_OP_SEND_ZC,
            &serve_variant<own_buffers, echo_zero_copy>},
};

}  // namespace uring
