// SPDX-License-Identifier: MIT
// The word of a promise<T, watched_word>, which stands in for std::atomic<void*> on one thread: a
// test can let the other side come in before any access, and look at the memory orders afterwards.
// Owns     its value.
// Lifetime a watch sees the accesses to every word from its construction to its destruction.
// Threads  one.
// Errors   what the function that comes in throws.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>
#include <vector>

namespace course_test {

struct word_access {
  void* read = nullptr;
  bool has_written = false;
  std::memory_order order = std::memory_order_relaxed;

  [[nodiscard]] bool releases() const noexcept {
    return order == std::memory_order_release || order == std::memory_order_acq_rel ||
           order == std::memory_order_seq_cst;
  }
  [[nodiscard]] bool acquires() const noexcept {
    return order == std::memory_order_acquire || order == std::memory_order_consume ||
           order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
  }
};

class [[nodiscard]] watch {
 public:
  watch() : watch{-1, [] {}} {}  // nobody comes in
  // Calls `come_in` once, right after the first write, inside the call that makes it.
  [[nodiscard]] static watch after_the_write(std::function<void()> come_in) {
    return watch{after_a_write, std::move(come_in)};
  }
  // Calls `come_in` once, right before the access with this number; the first is number 0.
  watch(int before_access, std::function<void()> come_in)
      : before_access_{before_access}, come_in_{std::move(come_in)} {
    current_ = this;
  }
  watch(watch&&) = delete;
  ~watch() { current_ = nullptr; }

  [[nodiscard]] bool came_in() const noexcept { return came_in_; }

  [[nodiscard]] bool has_written() const {
    return std::ranges::any_of(accesses_, &word_access::has_written);
  }
  // Whether a thread that sees this write also sees all earlier writes.
  [[nodiscard]] bool publishes() const {
    return std::ranges::all_of(
        accesses_, [](const word_access& each) { return !each.has_written || each.releases(); });
  }
  // Whether the last access that found a value makes visible what the writing thread had written
  // before. An earlier one, as in resolve()'s assert, does not count: the code acts on the last.
  [[nodiscard]] bool sees_what_it_found() const {
    bool sees = false;
    for (const word_access& each : accesses_) {
      if (each.read != nullptr) sees = each.acquires();
    }
    return sees;
  }

 private:
  friend class watched_word;

  // Accesses of the side that comes in are not watched.
  static void before_an_access() {
    if (current_ != nullptr && current_->count_++ == current_->before_access_) let_in();
  }
  static void after_a_write_of_ours() {
    if (current_ == nullptr || current_->before_access_ != after_a_write) return;
    if (!current_->came_in_) let_in();
  }
  static void let_in() {
    watch* const watching = std::exchange(current_, nullptr);
    watching->came_in_ = true;
    watching->come_in_();
    current_ = watching;
  }
  static void note(word_access access) {
    if (current_ != nullptr) current_->accesses_.push_back(access);
  }

  static constexpr int after_a_write = -2;

  static inline watch* current_ = nullptr;

  int before_access_;
  std::function<void()> come_in_;
  int count_ = 0;
  bool came_in_ = false;
  std::vector<word_access> accesses_;
};

// What a promise may ask of a std::atomic<void*>.
class watched_word {
 public:
  using order = std::memory_order;

  // NOLINTNEXTLINE(google-explicit-constructor): nor is that of std::atomic
  watched_word(void* value) noexcept : value_{value} {}
  watched_word(watched_word&&) = delete;

  [[nodiscard]] void* load(order asked = order::seq_cst) const {
    watch::before_an_access();
    watch::note({value_, false, asked});
    return value_;
  }
  void store(void* value, order asked = order::seq_cst) {
    watch::before_an_access();
    watch::note({nullptr, true, asked});
    value_ = value;
    watch::after_a_write_of_ours();
  }
  void* exchange(void* value, order asked = order::seq_cst) {
    watch::before_an_access();
    watch::note({value_, true, asked});
    void* const found = std::exchange(value_, value);
    watch::after_a_write_of_ours();
    return found;
  }

  bool compare_exchange_strong(void*& expected, void* value, order success, order failure) {
    watch::before_an_access();
    const bool is_equal = value_ == expected;
    watch::note({value_, is_equal, is_equal ? success : failure});
    (is_equal ? value_ : expected) = is_equal ? value : value_;
    if (is_equal) watch::after_a_write_of_ours();
    return is_equal;
  }
  bool compare_exchange_strong(void*& expected, void* value, order asked = order::seq_cst) {
    return compare_exchange_strong(expected, value, asked, of_a_failure(asked));
  }

  // Fails the first time, whatever the word holds: some processors do that.
  bool compare_exchange_weak(void*& expected, void* value, order success, order failure) {
    if (std::exchange(has_failed_, true)) {
      return compare_exchange_strong(expected, value, success, failure);
    }
    expected = load(failure);
    return false;
  }
  bool compare_exchange_weak(void*& expected, void* value, order asked = order::seq_cst) {
    return compare_exchange_weak(expected, value, asked, of_a_failure(asked));
  }

  // NOLINTNEXTLINE(google-explicit-constructor): nor is that of std::atomic
  operator void*() const { return load(); }
  void* operator=(void* value) {  // NOLINT(misc-unconventional-assign-operator): as std::atomic's
    store(value);
    return value;
  }

 private:
  // A failed exchange writes nothing, and so releases nothing.
  static order of_a_failure(order asked) noexcept {
    if (asked == order::acq_rel) return order::acquire;
    return asked == order::release ? order::relaxed : asked;
  }

  void* value_;
  bool has_failed_ = false;
};

}  // namespace course_test
