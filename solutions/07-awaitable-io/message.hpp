// SPDX-License-Identifier: MIT
// A message from one ring to another, by IORING_OP_MSG_RING, and its receiver.
// Lifetime the receiver must outlive the queue that it is set for, or be replaced before it ends.
// Threads  on_message() is called by the thread that runs the receiving queue.
// See      io_uring_prep_msg_ring(3)
#pragma once

#include <cstdint>

namespace uring {

inline constexpr std::uint64_t message_bit = 1;  // in a completion's user_data: it is a message

// The receiver gets this when another ring's thread has used msg_ring_op.
struct message {
  std::uint64_t word;  // an even number, such as an address
  std::int32_t value;
};

class message_receiver {
 public:
  virtual void on_message(const message& arrived) = 0;

 protected:
  ~message_receiver() = default;
};

}  // namespace uring
