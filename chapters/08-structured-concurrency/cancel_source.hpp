// SPDX-License-Identifier: MIT
// cancel() asks all operations that were started through this source to end.
// Owns     nothing; it lists the operations that are in flight.
// Lifetime it must outlive every operation that was started through it. Its parent and the queue
//          must outlive it.
// Threads  the one that runs the queue.
// Errors   cancel() throws std::system_error if the ring takes no more requests. Then some of the
//          operations may not have been asked to end, and these go on.
// Rule     it stays canceled: later operations through it end immediately with -ECANCELED.
//          A cancel only asks a target to end. The target's own completion tells how it ended.
//          A cancel does not find a request that waits in a link chain for the one before it.
// See      io_uring_cancelation(7), io_uring_prep_cancel(3)
#pragma once

#include <liburing.h>

#include <cassert>
#include <cstdint>

#include "canceler.hpp"
#include "io_handle.hpp"
#include "io_operation.hpp"
#include "io_queue.hpp"
#include "list_link.hpp"
#include "todo.hpp"

namespace uring {

// A source ends operations. It can also end a cancel_target: another source, or a coroutine that
// waits for something other than the kernel.
class cancel_target : public list_link {
 public:
  virtual void ask_to_end() = 0;  // may start a request, but must not resume a coroutine itself

 protected:
  ~cancel_target() { unlink(); }
};

class cancel_source;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

// cancel_source own{child_of{all}};
struct child_of {
  cancel_source& parent;
};

// A canceler converts implicitly to an io_handle, so one can write recv_op(source, …). The request
// then goes to the source's queue, and the source can end it.
class cancel_source final : public canceler, private cancel_target {
 public:
  explicit cancel_source(io_queue& queue) noexcept : canceler{queue} {}
  // A cancel of the parent reaches this child, so the parent has to watch() each child. A cancel of
  // the child does not reach the parent. If the parent is canceled already, so is the child.
  explicit cancel_source(child_of above) : canceler{above.parent.queue()} {
    COURSE_TODO("08.3");
  }
  ~cancel_source() {
    // If the ring has failed, frames were destroyed with operations that are still in the list.
    if (queue().in_flight() == 0) operations_.forget();
    assert(operations_.empty() && "an operation of this source is still in flight");
  }

  // Refuses operations from now on, and asks those in flight to end. Later calls do nothing.
  void cancel() {
    if (is_canceled_) return;
    is_canceled_ = true;
    queue().remind(*this);
    if (!operations_.empty()) ask_operations_to_end();
    while (!targets_.empty()) targets_.pop_front().ask_to_end();
  }

  // From here until `target` unlinks itself, a cancel of this source asks `target` to end.
  void watch(cancel_target& target) noexcept { targets_.push_back(target); }

 private:
  // Keeps `started`, which is in flight, in operations_ until its final completion.
  void watch(io_operation& started) noexcept override { operations_.push_back(started); }

  // Calls ask_to_end() for each of operations_. An operation stays in the list until it completes.
  void ask_operations_to_end() {
    COURSE_TODO("08.3");
  }

  // Starts a request that cancels `target`, which is in flight. Uses queue().start_unheard(): no
  // code needs the cancel's own result, because the target's completion tells how the target ended.
  // Prepares the cancel with io_uring_prep_cancel64() and no flags. The kernel finds the target by
  // its user_data, the operation's address, which a reinterpret_cast turns into a std::uint64_t.
  void ask_to_end(const io_operation& target) {
    COURSE_TODO("08.3");
  }

  void ask_to_end() override { cancel(); }

  [[nodiscard]] bool waits_for_an_end() const noexcept override {
    return is_canceled_ && !operations_.empty();
  }
  void ask_again() override { ask_operations_to_end(); }

  linked_list<io_operation> operations_;
  linked_list<cancel_target> targets_;
};

}  // namespace uring
