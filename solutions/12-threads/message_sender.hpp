// SPDX-License-Identifier: MIT
// A ring by which threads that have no ring of their own send messages.
// Owns     the ring, at which no thread waits and to which no message is sent.
// Lifetime it must outlive every send().
// Threads  any. One thread at a time uses the ring, for one system call.
// Errors   the constructor throws std::system_error. send() does not fail: if the kernel has no
//          memory, send() tries again. It ends the program if io_uring is not permitted any more,
//          or if the ring of `to` is not enabled yet.
#pragma once

#include <liburing.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>

#include "addressed.hpp"
#include "errors.hpp"
#include "io_queue.hpp"
#include "message.hpp"
#include "ring.hpp"

namespace uring {

class message_sender {
 public:
  message_sender() : ring_{{.sq_entries = 1, .cq_entries = 2}} {}
  message_sender(message_sender&&) = delete;

  // `receiver` gets the message on the thread that runs `to`, perhaps before send() has returned.
  void send(io_queue& to, message_receiver& receiver, std::int32_t value) noexcept {
    const std::lock_guard lock{mutex_};
    while (!try_send(to.handle().ring_fd, address_of(receiver), value)) {
      std::this_thread::sleep_for(memory_pause_ms);
    }
  }

 private:
  static constexpr std::chrono::milliseconds memory_pause_ms{1};

  // False if the kernel had no memory for the message.
  bool try_send(int ring_fd, std::uint64_t word, std::int32_t value) {
    ::io_uring_sqe& sqe = ring_.get_sqe();
    ::io_uring_prep_msg_ring(&sqe, ring_fd, static_cast<unsigned>(value), word | message_bit, 0);
    std::span<const completion> done;
    while (done.empty()) {
      (void)ring_.submit_and_wait();
      done = ring_.reap();
    }
    const std::int32_t res = done.front().res;
    if (res == -EOVERFLOW || res == -ENOMEM) return false;
    if (res != 0) common::throw_error(res, "MSG_RING");
    return true;
  }

  std::mutex mutex_;
  ring ring_;
};

}  // namespace uring
