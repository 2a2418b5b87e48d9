// SPDX-License-Identifier: MIT
// Shows whether a thread of the kernel waits for a request that cannot be done at once.
// Threads  it counts the kernel's worker threads of the whole process.
// Errors   std::system_error.
// See      io_uring_register(2): IORING_REGISTER_IOWQ_MAX_WORKERS
#pragma once

#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "errors.hpp"
#include "fact_chain.hpp"
#include "local_pair.hpp"
#include "ring.hpp"
#include "unique_fd.hpp"

namespace uring {

[[nodiscard]] inline std::int64_t worker_threads() {
  std::int64_t count = 0;
  for (const auto& thread : std::filesystem::directory_iterator{"/proc/self/task"}) {
    std::ifstream file{thread.path() / "comm"};
    std::string name;
    if (std::getline(file, name) && name.starts_with("iou-wrk")) ++count;
  }
  return count;
}

// Submits the requests of `waiting`, calls `meanwhile`, and then counts the worker threads, while
// the requests that are left still wait. The end of the ring cancels them.
inline std::int64_t workers_while(
    const std::vector<prepare_fact>& waiting, std::uint8_t link = 0,
    const std::function<void()>& meanwhile = [] {}) {
  constexpr std::chrono::milliseconds to_start{50};
  ring own{{}};
  put_chain(own, waiting, link);
  ::io_uring_submit(&own.handle());
  meanwhile();
  std::this_thread::sleep_for(to_start);
  return worker_threads();
}

// Idle workers stay for a while. So the requests that need no worker come first.
inline void show_workers() {
  std::puts("Worker threads of the kernel, while three requests wait:");
  std::array<char, 64> buffer{};
  std::array<int, 2> ends{};
  common::check(::pipe2(ends.data(), O_CLOEXEC), "pipe2");
  const common::unique_fd read_end{ends[0]};
  const common::unique_fd write_end{ends[1]};
  const common::local_pair sockets;
  const auto recv = [&](::io_uring_sqe& sqe) {
    ::io_uring_prep_recv(&sqe, sockets.ours.get(), buffer.data(), buffer.size(), 0);
  };
  const auto poll = [&](::io_uring_sqe& sqe) {
    ::io_uring_prep_poll_add(&sqe, sockets.ours.get(), POLLIN);
  };
  const auto recv_async = [&](::io_uring_sqe& sqe) {
    recv(sqe);
    sqe.flags |= IOSQE_ASYNC;
  };
  const auto splice = [&](::io_uring_sqe& sqe) {
    ::io_uring_prep_splice(&sqe, sockets.ours.get(), -1, write_end.get(), -1, 64, 0);
  };
  print_fact("RECV", workers_while({recv, recv, recv}));
  // When bytes have come, the first two complete, but the last one has to wait.
  print_fact("RECV, linked to a RECV that was linked to a POLL_ADD",
             workers_while({poll, recv, recv}, IOSQE_IO_LINK, [&] { sockets.say("bytes"); }));
  print_fact("RECV with IOSQE_ASYNC", workers_while({recv_async, recv_async, recv_async}));
  print_fact("SPLICE", workers_while({splice, splice, splice}));
}

}  // namespace uring
