// SPDX-License-Identifier: MIT
// Shows how often a chain wakes the program, and how a request linked to a short transfer ends.
// Errors   std::system_error.
// See      io_uring_enter(2): IOSQE_IO_LINK, IOSQE_CQE_SKIP_SUCCESS
#pragma once

#include <liburing.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "errors.hpp"
#include "fact_chain.hpp"
#include "local_pair.hpp"
#include "memory_file.hpp"
#include "unique_fd.hpp"

namespace uring {

inline void show_wake_ups() {
  std::puts("A chain of eight timers, each of which begins when the one before it has run out:");
  static ::__kernel_timespec each{.tv_sec = 0, .tv_nsec = 2'000'000};
  const std::vector<prepare_fact> timers(8, [](::io_uring_sqe& sqe) {
    ::io_uring_prep_timeout(&sqe, &each, 0, IORING_TIMEOUT_ETIME_SUCCESS);
  });
  const chain_outcome all = run_chain(timers);
  const chain_outcome last = run_chain(without_success(timers));
  print_fact("completions, linked", all.completions);
  print_fact("wake-ups, linked", all.waits);
  print_fact("completions, linked and successes skipped", last.completions);
  print_fact("wake-ups, linked and successes skipped", last.waits);
}

// The file has 100 bytes. The write was prepared for 4,096.
inline std::int32_t write_after_short_read(std::uint8_t link) {
  std::array<char, 4096> block{};
  const common::unique_fd from = file_with(std::string(100, 'x'));
  const common::unique_fd to = file_with("");
  const auto read = [&](::io_uring_sqe& sqe) {
    ::io_uring_prep_read(&sqe, from.get(), block.data(), block.size(), 0);
  };
  const auto write = [&](::io_uring_sqe& sqe) {
    ::io_uring_prep_write(&sqe, to.get(), block.data(), block.size(), 0);
  };
  return run_chain({read, write}, link).last;
}

// Ten bytes have come, and then EOF. The send was prepared for 512.
inline std::int32_t send_after_short_recv(int flags) {
  std::array<char, 512> buffer{};
  const common::local_pair sockets;
  sockets.say("ten bytes.");
  common::check(::shutdown(sockets.theirs.get(), SHUT_WR), "shutdown");
  const auto recv = [&](::io_uring_sqe& sqe) {
    ::io_uring_prep_recv(&sqe, sockets.ours.get(), buffer.data(), buffer.size(), flags);
  };
  const auto send = [&](::io_uring_sqe& sqe) {
    ::io_uring_prep_send(&sqe, sockets.ours.get(), buffer.data(), buffer.size(), MSG_NOSIGNAL);
  };
  return run_chain({recv, send}).last;
}

inline void show_short_transfers() {
  std::puts("What is linked to a transfer that came out short:");
  print_bytes("a WRITE of 4096 after a READ of 100", write_after_short_read(IOSQE_IO_LINK));
  print_bytes("the same, and hard-linked", write_after_short_read(IOSQE_IO_HARDLINK));
  print_bytes("a SEND of 512 after a RECV of 10", send_after_short_recv(0));
  print_bytes("the same, and the RECV with MSG_WAITALL", send_after_short_recv(MSG_WAITALL));
}

}  // namespace uring
