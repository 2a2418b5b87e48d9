// SPDX-License-Identifier: MIT
// Sends a large file a block at a time: a read, and a send of what it brought.
// Lifetime the link and the file must outlive the task.
// Threads  the one that runs the queue.
// Errors   false: the client is lost. If the file ends before its part does, the answer is not
//          whole. Then the connection is reset, so that the client can detect this.
// Rule     no more than a block of the file is in memory, however slowly the client reads. A splice
//          would keep a thread of the kernel waiting for as long as the client takes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "client_link.hpp"
#include "connection_reset.hpp"
#include "file_requests.hpp"
#include "file_selection.hpp"
#include "site_root.hpp"
#include "slow_waits.hpp"
#include "task.hpp"
#include "wait_kinds.hpp"

namespace uring::http {

// Sends the part after the head of the answer, which is in link.out already.
inline task<bool> send_large_file(client_link& link, const found_file& file, file_selection part) {
  while (part.bytes > 0) {
    const std::span<char> room = link.out.room();
    const std::size_t wanted = std::min<std::uint64_t>(room.size(), part.bytes);
    link.limit.start(wait_for::file);
    const io_result read = co_await read_file_op(
        link.limit.source(), file, std::as_writable_bytes(room.first(wanted)), part.first);
    if (read.is_passing()) continue;
    if (!read || read.count() == 0) {
      reset_connection(link.socket);
      co_return false;
    }
    link.out.add(read.count());
    part.first += read.count();
    part.bytes -= read.count();
    const bool sent = co_await send_out(link);
    if (!sent) co_return false;
  }
  link.limit.stop();
  co_return true;
}

}  // namespace uring::http
