// SPDX-License-Identifier: MIT
// Limits how long clients may take. It uses ordered lists of limits, not a timer for each client.
// Owns     nothing; a limit is a member of the object that it limits.
// Lifetime the lists must outlive every limit. A limit must outlive every wait under its source().
// Threads  the one that runs the queue.
// Errors   std::system_error if the ring takes no more requests.
// Rule     every limit of a list has the same length. So the limit that was started first is over
//          first, and only the front has to be checked. Starting a limit costs no request.
#pragma once

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>

#include "cancel_source.hpp"
#include "list_link.hpp"
#include "todo.hpp"
#include "wait_kinds.hpp"

namespace uring::http {

class time_limit;

class time_limits {
 public:
  explicit time_limits(const limit_lengths& lengths) noexcept : lengths_{lengths} {}
  time_limits(time_limits&&) = delete;  // limits hold its address

  // Ends every limit that is over by now, unless its client has_taken_something().
  void sweep(limit_clock::time_point now);

  // Ends the limit of each client that is idle, and from now on of each client that becomes idle.
  void end_idle();
  // Ends the limit of the client that has been idle for longest. False if no client is idle.
  bool end_longest_idle();

  // How often to call sweep(): then no limit is late by more than an eighth of the shortest limit,
  // or by more than 5 ms if that is longer.
  [[nodiscard]] std::chrono::milliseconds period() const noexcept {
    using std::chrono::milliseconds;
    return std::clamp(*std::ranges::min_element(lengths_) / 8, milliseconds{5}, milliseconds{1000});
  }

 private:
  friend class time_limit;
  using running = linked_list<time_limit>;

  void end_those_over(running& list, std::chrono::milliseconds length, limit_clock::time_point now);
  [[nodiscard]] running& list(wait_for what) { return lists_[static_cast<std::size_t>(what)]; }

  std::array<running, wait_kinds> lists_;
  limit_lengths lengths_;
  bool nobody_idles_ = false;
};

// The limit of one client, which waits for one thing at a time.
class time_limit : public list_link {
 public:
  time_limit(time_limits& all, cancel_source& above, int socket) noexcept
      : all_{all}, above_{above}, socket_{socket} {}
  ~time_limit() { unlink(); }

  // --8<-- [start:start]
  // Starts the limit for a wait for `what`. Writes a few pointers, and allocates nothing.
  void start(wait_for what) {
    unlink();
    not_taken_ = none_known;
    started_ = coarse_now();
    waits_for_ = what;
    source_.emplace(child_of{above_});  // the previous source may be canceled
    all_.list(what).push_back(*this);
    // --8<-- [end:start]
    if (what == wait_for::request && all_.nobody_idles_) end();
  }
  // The same, unless the limit for `what` runs already: more bytes do not prolong it.
  void start_once(wait_for what) {
    if (!is_linked() || waits_for_ != what) start(what);
  }
  void stop() noexcept { unlink(); }

  // Waits under this source end when the time is up.
  [[nodiscard]] cancel_source& source() noexcept { return *source_; }
  [[nodiscard]] bool is_over() const noexcept { return source_ && source_->is_canceled(); }
  [[nodiscard]] wait_for what() const noexcept { return waits_for_; }

 private:
  friend class time_limits;
  static constexpr int none_known = std::numeric_limits<int>::max();

  [[nodiscard]] bool is_over_at(limit_clock::time_point now,
                                std::chrono::milliseconds length) const noexcept {
    return started_ + length <= now;
  }
  void start_again(limit_clock::time_point now) {
    started_ = now;
    all_.list(waits_for_).push_back(*this);
  }
  // The wait under the source will end with -ECANCELED.
  void end() {
    unlink();
    source_->cancel();
  }

  // A client that has taken some bytes since our last look is slow, but not gone. Each call is such
  // a look, so a sweep calls this once for each limit. SIOCOUTQ counts the bytes that the client's
  // kernel has not acknowledged. Before its next request, a client may still be reading the last
  // answer. But reading gives a client no more time to end a request that it has begun.
  [[nodiscard]] bool has_taken_something() {
    if (waits_for_ != wait_for::room && waits_for_ != wait_for::request) return false;
    int now = 0;
    if (::ioctl(socket_, SIOCOUTQ, &now) != 0 || now == 0 || now >= not_taken_) return false;
    not_taken_ = now;
    return true;
  }

  time_limits& all_;
  cancel_source& above_;
  int socket_;
  int not_taken_ = none_known;
  wait_for waits_for_ = wait_for::request;
  limit_clock::time_point started_;
  std::optional<cancel_source> source_;
};

inline void time_limits::sweep(limit_clock::time_point now) {
  for (std::size_t kind = 0; kind < wait_kinds; ++kind) {
    const bool none = lists_[kind].empty() || !lists_[kind].front().is_over_at(now, lengths_[kind]);
    if (!none) end_those_over(lists_[kind], lengths_[kind], now);
  }
}

// Takes each limit for which is_over_at(now, length) is true out of `list`. Look at no more limits
// than you must, because there may be ten thousand. `list` has empty(); front(), which leaves the
// first limit in the list; and pop_front(), which takes it out. Call has_taken_something() once for
// each limit that you have taken out. If it returns true, the limit's client is only slow: call
// start_again(now), which adds the limit to the end of its list. Otherwise call end().
inline void time_limits::end_those_over(running& list, std::chrono::milliseconds length,
                                        limit_clock::time_point now) {
  // --8<-- [start:task-14-4]
  while (!list.empty() && list.front().is_over_at(now, length)) {
    time_limit& first = list.pop_front();
    if (first.has_taken_something()) {
      first.start_again(now);
    } else {
      first.end();
    }
  }
  // --8<-- [end:task-14-4]
}

inline void time_limits::end_idle() {
  nobody_idles_ = true;
  while (end_longest_idle()) continue;
}

// Ends the limit in `idle` that was started first, and returns true. If there is none, returns
// false. A limit's end() takes the limit out of its list.
inline bool time_limits::end_longest_idle() {
  running& idle = list(wait_for::request);
  // --8<-- [start:task-14-4b]
  if (idle.empty()) return false;
  idle.front().end();
  return true;
  // --8<-- [end:task-14-4b]
}

}  // namespace uring::http
