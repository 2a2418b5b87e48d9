// SPDX-License-Identifier: MIT
// What a client has sent and nobody has read yet: where the kernel has put it if that is possible,
// and else in memory of our own.
// Owns     the buffer of the pool that it reads from, or the copy.
// Lifetime a view of rest() is good until the next take() or keep().
// Threads  the one that runs the queue.
// Errors   std::bad_alloc.
// Rule     a buffer of the pool is held while our own code runs, and not for as long as a client or
//          a disk pleases: before such a wait, keep(). A request that comes whole is never copied.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "buffer_pool.hpp"

namespace uring::http {

class request_input {
 public:
  // What has not been read. The reader removes from its front.
  [[nodiscard]] std::string_view& rest() noexcept { return rest_; }

  // More has come, and stands behind what is here.
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

  // The same, for a piece whose buffer has to go home at once.
  void take_copy(const received& got) {
    keep();
    append(text_of(got));
  }

  // Lets the buffer go home. What has not been read is copied, and stands at the front of the copy.
  void keep() {
    if (!lease_) return;
    copy_.assign(rest_);
    rest_ = copy_;
    lease_ = {};
  }

  // Nobody will read it.
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
