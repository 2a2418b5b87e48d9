// SPDX-License-Identifier: MIT
// One worker accepts the clients of all workers, and deals them out in messages.
// Owns     arrivals: the clients that have arrived and that next() has not returned yet.
// Lifetime the dealer and all arrivals must outlive every thread.
// Threads  dealer: its own worker's thread. arrivals: the thread of the worker that they are for.
// Errors   hand_over() returns false if the kernel refuses the message. std::system_error if there
//          is no room to send it, or if the dealer's ring cannot be made.
// Rule     a client is in exactly one place: with the dealer, in a message, or with a worker. No
//          worker leaves its loop while a message may be on its way to it.
// See      io_uring_prep_msg_ring(3)
#pragma once

#include <cerrno>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <list>
#include <utility>
#include <vector>

#include "accepted.hpp"
#include "addressed.hpp"
#include "io_context.hpp"
#include "message_sender.hpp"
#include "operations.hpp"
#include "task.hpp"
#include "todo.hpp"
#include "unique_fd.hpp"

namespace uring {

// Receives the clients that are dealt to one worker.
class arrivals final : public message_receiver {
 public:
  struct next_client;

  explicit arrivals(io_queue& queue) noexcept : queue_{queue} {}
  arrivals(arrivals&&) = delete;  // messages have its address

  [[nodiscard]] io_queue& queue() noexcept { return queue_; }

  // Call it before the first next(), so that the loop does not end before all clients have come.
  void begin() noexcept {
    is_expecting_ = !all_have_come();
    if (is_expecting_) queue_.expect_message();
  }

  // accepted got = co_await here.next(). Its result is -ECANCELED if no other client will come.
  [[nodiscard("it waits when it is awaited")]] next_client next() noexcept;

  // A message's value is a client's descriptor, or no_more_than(sent), where `sent` is the number
  // of all clients that were dealt to this worker.
  [[nodiscard]] static constexpr std::int32_t no_more_than(std::int32_t sent) noexcept {
    return ~sent;  // ~ turns a count into a negative number, and ~ of that number is the count
  }
  [[nodiscard]] bool all_have_come() const noexcept { return come_ == sent_; }

  void on_message(const message& arrived) override {
    try {
      keep(arrived);
    } catch (...) {
      expect_no_more();  // a worker that fails must not wait for clients that it cannot count
      throw;
    }
    if (all_have_come()) expect_no_more();
    if (consumer_ && is_ready()) std::exchange(consumer_, nullptr).resume();
  }

 private:
  // The value of `arrived` is a client's descriptor or no_more_than(sent). Keeps a descriptor in
  // waiting_, and counts the client in come_. If the value is no_more_than(sent), keeps `sent` in
  // sent_. The kernel promises no order of messages, and this message comes from another ring, so
  // it may arrive before some of the clients.
  void keep(const message& arrived) {
    // --8<-- [start:task-12-3b]
    if (arrived.value < 0) {
      sent_ = ~arrived.value;
    } else {
      waiting_.push_back(common::unique_fd{arrived.value});  // NOLINT(modernize-use-emplace)
      ++come_;
    }
    // --8<-- [end:task-12-3b]
  }

  void expect_no_more() noexcept {
    if (std::exchange(is_expecting_, false)) queue_.message_has_come();
  }

  [[nodiscard]] bool is_ready() const noexcept { return !waiting_.empty() || all_have_come(); }

  accepted take() {
    if (waiting_.empty()) return {.result = io_result{-ECANCELED}, .client = {}};
    common::unique_fd first = std::move(waiting_.front());
    waiting_.pop_front();
    return {.result = io_result{first.get()}, .client = std::move(first)};
  }

  io_queue& queue_;
  std::list<common::unique_fd> waiting_;
  std::int32_t come_ = 0;   // how many have come
  std::int32_t sent_ = -1;  // how many come in all; negative as long as that is not known
  bool is_expecting_ = false;
  std::coroutine_handle<> consumer_;
};

struct arrivals::next_client {
  bool await_ready() const noexcept { return from.is_ready(); }
  void await_suspend(std::coroutine_handle<> awaiting) const noexcept { from.consumer_ = awaiting; }
  accepted await_resume() const { return from.take(); }

  arrivals& from;
};

inline arrivals::next_client arrivals::next() noexcept {
  return {*this};
}

// Sends the descriptor of `client` to the worker of `to`, in a message: co_await
// msg_ring_op(context, to.queue(), address_of(to), the descriptor). This returns an io_result;
// bool{the result} is true if the message was sent. If so, return true. Otherwise return false;
// then `client` must own the descriptor, as before the call. Decide which side owns the descriptor
// during the wait, so that it is closed only once. See unique_fd.hpp: get() lends the number, and
// release() gives it away.
inline task<bool> hand_over(io_context& context, arrivals& to, common::unique_fd& client) {
  context.reserve(1);  // if the queue stays full, this throws, and `client` keeps its descriptor
  // --8<-- [start:task-12-3]
  const int fd = client.release();
  const io_result sent = co_await msg_ring_op(context, to.queue(), address_of(to), fd);
  if (!sent) client = common::unique_fd{fd};
  co_return bool{sent};
  // --8<-- [end:task-12-3]
}

// Deals clients in turn to each of the other workers, and to its own.
class dealer {
 public:
  dealer(io_context& context, std::list<arrivals>& others) : context_{context} {
    for (arrivals& each : others) others_.push_back({&each});
  }
  dealer(dealer&&) = delete;

  // Sends the last messages, for which the others wait. Call it however the worker has ended.
  void end() noexcept {
    for (const place& each : others_) {
      sender_.send(each.to->queue(), *each.to, arrivals::no_more_than(each.sent));
    }
  }

  // False if `client` stays here: it is this worker's turn, or the message could not be sent.
  task<bool> deal(common::unique_fd& client) {
    const std::size_t turn = turn_;
    turn_ = (turn_ + 1) % (others_.size() + 1);
    if (turn == others_.size()) co_return false;
    place& next = others_[turn];
    const bool is_gone = co_await hand_over(context_, *next.to, client);
    if (is_gone) ++next.sent;
    co_return is_gone;
  }

 private:
  struct place {
    arrivals* to;
    std::int32_t sent = 0;
  };

  io_context& context_;
  std::vector<place> others_;
  std::size_t turn_ = 0;
  message_sender sender_;
};

}  // namespace uring
