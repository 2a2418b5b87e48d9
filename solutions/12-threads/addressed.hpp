// SPDX-License-Identifier: MIT
// Messages that carry their receiver: a message's word is the address of the receiver.
// Lifetime a receiver must neither be destroyed nor move while a message to it may be on its way.
// Threads  the thread that runs the queue to which the message was sent calls on_message().
// Rule     within one process only: in another process the address would belong to another object.
#pragma once

#include <cstdint>

#include "message.hpp"

namespace uring {

// The word of a message for this receiver. It is even, because an object with virtual functions
// begins with a pointer. So the lowest bit is free for message_bit.
[[nodiscard]] inline std::uint64_t address_of(message_receiver& receiver) noexcept {
  return reinterpret_cast<std::uint64_t>(&receiver);
}

// Passes each message of a queue on to its receiver. Give a postman to io_queue::set_receiver(). It
// has no data, so one object is enough for all queues.
class postman final : public message_receiver {
 public:
  void on_message(const message& arrived) override {
    reinterpret_cast<message_receiver*>(arrived.word)->on_message(arrived);
  }
};

inline postman the_postman;

}  // namespace uring
