// SPDX-License-Identifier: MIT
// Ends operations in flight on request: those that were given this source.
// Owns     nothing; it lists the operations that are under way.
// Lifetime it must outlive every operation that was given it.
// Threads  the one that runs the io_context.
// Errors   std::system_error if the ring takes no more requests; what was not asked to end by then
//          is not.
// Rule     canceled once and for ever: what is awaited with it afterwards ends at once, -ECANCELED.
//          To cancel is to ask. Only the target's own completion tells how it ended.
// See      io_uring_cancelation(7)
#pragma once

#include <cassert>

#include "todo.hpp"

namespace uring {

class cancel_source {
 public:
  class target;

  cancel_source() = default;
  cancel_source(cancel_source&&) = delete;  // operations hold its address
  ~cancel_source() { assert(first_ == nullptr && "an operation is in flight and knows this source"); }

  // Asks all that are in flight, and all that will be, to end.
  void cancel();
  [[nodiscard]] bool is_canceled() const noexcept { return canceled_; }

 private:
  target* first_ = nullptr;  // of those in flight, in no order
  bool canceled_ = false;
};

// An operation that can be asked to end. It is linked in as long as it is in flight.
class cancel_source::target {
 public:
  target(target&&) = delete;  // its neighbors hold its address

 protected:
  explicit target(cancel_source* source) noexcept : source_{source} {}
  ~target() = default;

  [[nodiscard]] bool is_canceled() const noexcept { return source_ != nullptr && source_->canceled_; }

  void link() noexcept {
    if (source_ == nullptr) return;
    next_ = source_->first_;
    link_ = &source_->first_;
    if (next_ != nullptr) next_->link_ = &next_;
    source_->first_ = this;
  }

  void unlink() noexcept {
    if (link_ == nullptr) return;
    *link_ = next_;
    if (next_ != nullptr) next_->link_ = link_;
    link_ = nullptr;
  }

 private:
  friend class cancel_source;
  virtual void ask_to_end() = 0;  // submits a request; completes nothing now

  cancel_source* source_;     // null: nobody can cancel it
  target* next_ = nullptr;
  target** link_ = nullptr;   // what points at us: first_, or the next_ before us
};

inline void cancel_source::cancel() {
  if (canceled_) return;
  canceled_ = true;
  for (target* each = first_; each != nullptr; each = each->next_) each->ask_to_end();
}

}  // namespace uring
