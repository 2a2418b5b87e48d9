// SPDX-License-Identifier: MIT
// Ends operations in flight on request: those that were given this source.
// Owns     nothing; it lists the operations that are under way.
// Lifetime it must outlive every operation that was given it, and its parent must outlive it.
// Threads  the one that runs the io_context.
// Errors   std::system_error if the ring takes no more requests; who was not asked to end by then
//          is not.
// Rule     canceled once and for ever: what is awaited with it afterwards ends at once, -ECANCELED.
//          To cancel is to ask. Only the target's own completion tells how it ended.
// See      io_uring_cancelation(7)
#pragma once

#include <cassert>

namespace uring {

class cancel_source;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

// What a source asks to end. It is in the source's list as long as it is under way.
class cancel_target {
 public:
  cancel_target(cancel_target&&) = delete;  // its neighbors hold its address

 protected:
  cancel_target() = default;
  ~cancel_target() = default;

  void unlink() noexcept {
    if (link_ == nullptr) return;
    *link_ = next_;
    if (next_ != nullptr) next_->link_ = link_;
    link_ = nullptr;
  }

 private:
  friend class cancel_source;     // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final
  virtual void ask_to_end() = 0;  // submits a request, perhaps; completes nothing now

  cancel_target* next_ = nullptr;
  cancel_target** link_ = nullptr;  // what points at us: first_, or the next_ before us
};

// cancel_source own{child_of{all}};
struct child_of {
  cancel_source& parent;
};

class cancel_source final : cancel_target {
 public:
  cancel_source() = default;
  // Canceled with its parent, too: so a cancel reaches everything below it, and nothing above.
  explicit cancel_source(child_of above) : canceled_{above.parent.canceled_} {
    above.parent.link(*this);
  }
  ~cancel_source() {
    assert(first_ == nullptr && "what has this source is still under way, or did not unlink()");
    unlink();
  }

  // Asks all that are under way, and all that will be, to end.
  void cancel() {
    if (canceled_) return;
    canceled_ = true;
    for (cancel_target* each = first_; each != nullptr; each = each->next_) each->ask_to_end();
  }

  [[nodiscard]] bool is_canceled() const noexcept { return canceled_; }

  // From here until it unlinks itself, `target` is asked to end when this is canceled.
  void link(cancel_target& target) noexcept {
    target.next_ = first_;
    target.link_ = &first_;
    if (first_ != nullptr) first_->link_ = &target.next_;
    first_ = &target;
  }

 private:
  void ask_to_end() override { cancel(); }

  cancel_target* first_ = nullptr;  // of those under way, in no order
  bool canceled_ = false;
};

}  // namespace uring
