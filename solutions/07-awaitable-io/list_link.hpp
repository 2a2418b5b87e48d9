// SPDX-License-Identifier: MIT
// A list whose elements hold their own links, so that an element can be removed without a search.
// Lifetime unlink an element before it is destroyed. Empty a list before the list is destroyed.
#pragma once

#include <cassert>

namespace uring {

class list_link {
 public:
  list_link() = default;
  list_link(list_link&&) = delete;  // its neighbors hold its address

  [[nodiscard]] bool is_linked() const noexcept { return next_ != nullptr; }

  // Removes this from the list that it is in, if any.
  void unlink() noexcept {
    if (!is_linked()) return;
    before_->next_ = next_;
    next_->before_ = before_;
    next_ = before_ = nullptr;
  }

 private:
  template <typename T>
  friend class linked_list;

  list_link* before_ = nullptr;
  list_link* next_ = nullptr;
};

// A list of T, which derives from list_link: a ring of links, one of which is the list's own.
template <typename T>
class linked_list {
 public:
  linked_list() noexcept { ends_.next_ = ends_.before_ = &ends_; }
  linked_list(linked_list&&) = delete;  // the first and the last element hold our address
  ~linked_list() { assert(empty() && "an element outlives its list, or did not unlink()"); }

  [[nodiscard]] bool empty() const noexcept { return ends_.next_ == &ends_; }

  // The list must not be empty.
  [[nodiscard]] T& front() const noexcept {
    assert(!empty() && "the list is empty: ask empty() first");
    return static_cast<T&>(*ends_.next_);
  }
  [[nodiscard]] T& back() const noexcept {
    assert(!empty() && "the list is empty: ask empty() first");
    return static_cast<T&>(*ends_.before_);
  }

  // The element must be in no list.
  void push_back(T& element) noexcept {
    list_link& link = element;
    assert(!link.is_linked() && "it is in a list already: unlink() it, or pop_front() it, first");
    link.next_ = &ends_;
    link.before_ = ends_.before_;
    link.before_->next_ = ends_.before_ = &link;
  }

  // Removes the first element and returns it. The list must not be empty.
  T& pop_front() noexcept {
    T& first = front();
    static_cast<list_link&>(first).unlink();
    return first;
  }

  // For elements that were destroyed while linked: empties the list without access to them.
  void forget() noexcept { ends_.next_ = ends_.before_ = &ends_; }

  // Calls `visit` with each element, from the first to the last. `visit` must not unlink elements.
  template <typename Visit>
  void for_each(Visit visit) {
    for (list_link* each = ends_.next_; each != &ends_; each = each->next_) {
      visit(static_cast<T&>(*each));
    }
  }

 private:
  list_link ends_;
};

}  // namespace uring
