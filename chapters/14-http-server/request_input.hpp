// SPDX-License-Identifier: MIT
// The bytes that a client has sent and that were not parsed yet. If possible, they stay in the
// buffer where the kernel has put them; otherwise they are copied to memory of our own.
// Owns     the buffer of the pool that it reads from, or the copy.
// Lifetime a view of rest() is valid until the next take() or keep().
// Threads  the one that runs the queue.
// Errors   std::bad_alloc.
// Rule     a buffer of the pool is held while our own code runs, never while we wait for a client
//          or a disk: before such a wait, call keep(). A request that comes whole is never copied.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "buffer_pool.hpp"

namespace uring::http {

class request_input {
 public:
  // The bytes that were not read yet. The reader removes bytes from the front of this view.
  [[nodiscard]] std::string_view& rest() noexcept { return rest_; }

  // Adds the bytes of `got` to the end of the rest.
  void take(received got) {
    const std::string_view more = text_of(got);
    if (rest_.empty()) {
      copy_ = {};
      lease_ = std::move(got.lease);
      rest_ = more;
      return;
    }
    keep();
    append(more);
  }

  // The same, for a piece whose buffer has to be returned at once.
  void take_copy(const received& got) {
    keep();
    append(text_of(got));
  }

  // Copies the bytes that were not read yet, and returns the buffer to the pool.
  void keep() {
    if (!lease_) return;
    copy_.assign(rest_);
    rest_ = copy_;
    lease_ = {};
  }

  // Drops the rest, if it will not be read any more.
  void drop() noexcept {
    rest_ = {};
    copy_ = {};
    lease_ = {};
  }

 private:
  void append(std::string_view more) {
    copy_.erase(0, copy_.size() - rest_.size());
    copy_.append(more);
    rest_ = copy_;
  }

  [[nodiscard]] static std::string_view text_of(const received& got) noexcept {
    return {reinterpret_cast<const char*>(got.bytes().data()), got.bytes().size()};
  }

  buffer_lease lease_;
  std::string copy_;
  std::string_view rest_;  // the end of lease_'s bytes, or of copy_
};

}  // namespace uring::http
