// SPDX-License-Identifier: MIT
// A multishot request as a stream, from which a coroutine awaits one item after the other.
// Owns     the items that have come and were not taken yet.
// Lifetime from the first next() until end() has returned, it must not move:
//          co_await finally(consume(stream), stream.end()).
// Threads  the one that runs the queue.
// Errors   an item's result. It is -ECANCELED if `io` was canceled, or if its queue is stopping.
// Rule     next() arms the request only if all items are taken and the request is not in flight.
//          A final completion may bring an item like any other. But a final -ECANCELED brings none,
//          unless a consumer waits and no new request can be armed.
#pragma once

#include <cassert>
#include <cerrno>
#include <coroutine>
#include <cstddef>
#include <list>
#include <utility>

#include "io_handle.hpp"
#include "io_operation.hpp"
#include "io_request.hpp"
#include "multishot_request.hpp"
#include "task.hpp"
#include "todo.hpp"

namespace uring {

inline constexpr std::size_t stream_items_max = 16;

// `prepare(sqe)` fills in a multishot request; prepare.result(done) makes an item of a completion.
// The item owns what the completion has brought, so that nothing leaks if the item is dropped.
template <typename Prepare>
class stream final : private multishot_request {
 public:
  using item = decltype(result_of(std::declval<const Prepare&>(), completion{}));
  struct next_item;

  // The stream asks the request to end when `items_max` items wait to be taken.
  stream(const io_handle& io, Prepare prepare, std::size_t items_max = stream_items_max)
      : multishot_request{io, &on_completion}, prepare_{prepare}, items_max_{items_max} {}

  // item got = co_await stream.next(): one coroutine at a time.
  next_item next() noexcept { return next_item{*this}; }

  // co_await stream.disarm(): asks the request to end, and returns when it has ended. The items
  // that have come by then are kept. A later next() may arm the request again.
  using multishot_request::disarm;

  // Await it after the last next(): then nothing is in flight, and items not taken are dropped.
  task<> end() {
    co_await disarm();
    arrived_.clear();
  }

  using multishot_request::is_armed;
  using multishot_request::queue;

  // How many items have come and were not taken yet, and the first of them. front() and take() need
  // an item: size() > 0.
  [[nodiscard]] std::size_t size() const noexcept { return arrived_.size(); }
  [[nodiscard]] const item& front() const noexcept { return arrived_.front(); }
  item take() {
    item first = std::move(arrived_.front());
    arrived_.pop_front();
    return first;
  }

  // Makes an item for an error that no completion has reported.
  [[nodiscard]] item failed_with(int error) const {
    return result_of(prepare_, {.user_data = 0, .res = -error, .flags = 0});
  }

 private:
  template <typename>
  friend class patient_next;

  // No item is there, and `consumer` is about to wait. False if no item can come: do not suspend.
  bool wait(std::coroutine_handle<> consumer) {
    assert(!consumer_ && "one coroutine at a time waits for a stream");
    if (!ensure_armed(prepare_)) return false;
    consumer_ = consumer;
    return true;
  }

  // A consumer that is resumed may end and destroy this object, so resuming comes last.
  static void on_completion(io_operation& self, const completion& completed) {
    auto& to = static_cast<stream&>(self);
    const completion done = to.note(completed);
    item got = result_of(to.prepare_, done);
    const bool was_asked_to_end = !to.is_armed() && done.res == -ECANCELED;
    if (to.consumer_) {
      // The request was asked to end at the bound, and all items are taken by now: arm a new one.
      if (was_asked_to_end && to.ensure_armed(to.prepare_)) return;
      return to.hand_over(got);
    }
    if (!was_asked_to_end) to.keep(std::move(got));
    to.resume_disarming();
  }

  void hand_over(item& got) {
    handed_over_ = &got;
    std::exchange(consumer_, nullptr).resume();
  }

  // An item has come, and no consumer waits for it. Keeps the item as the last of arrived_. If
  // arrived_ has items_max_ items or more then, asks the request to end, with ask_to_end(), because
  // a request that is faster than its consumer would fill the memory, or take all buffers of a
  // pool. Items that still come before the request has ended are kept, too.
  void keep(item got) {
    COURSE_TODO("10.4");
  }

  // What next() returns: the item that the consumer has waited for, or else the first of arrived_.
  item given() {
    if (handed_over_ != nullptr) return std::move(*std::exchange(handed_over_, nullptr));
    return size() > 0 ? take() : failed_with(ECANCELED);
  }

  Prepare prepare_;
  std::size_t items_max_;
  std::list<item> arrived_;           // a std::deque would cost 672 bytes while it is empty
  std::coroutine_handle<> consumer_;  // waits for an item
  item* handed_over_ = nullptr;       // set while the consumer is being resumed
};

template <typename Prepare>
struct [[nodiscard("it waits when it is awaited")]] stream<Prepare>::next_item {
  bool await_ready() const noexcept { return from.size() > 0; }
  bool await_suspend(std::coroutine_handle<> awaiting) const { return from.wait(awaiting); }
  item await_resume() const { return from.given(); }

  stream& from;
};

}  // namespace uring
