// SPDX-License-Identifier: MIT
// Single steps on a socket, and the words for how they went: what `client` is made of.
// Errors   how a step went is a `transfer`; std::system_error if poll(2) itself fails.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "patience.hpp"

namespace course_test {

using std::chrono::milliseconds;

inline constexpr std::size_t chunk_bytes = 64 * 1024;

// A point in time up to which several waits together may take.
class time_limit {
 public:
  explicit time_limit(milliseconds allowed)
      : allowed_{allowed * patience()}, end_{std::chrono::steady_clock::now() + allowed_} {}

  [[nodiscard]] milliseconds left() const;  // never negative
  [[nodiscard]] std::string describe() const { return std::to_string(allowed_.count()) + " ms"; }

 private:
  milliseconds allowed_;
  std::chrono::steady_clock::time_point end_;
};

// False at the limit.
[[nodiscard]] bool wait_for(std::span<::pollfd> sockets, const time_limit& limit);
[[nodiscard]] bool wait_for(int fd, short events, const time_limit& limit);

enum class outcome { some, none_now, eof, broken };

struct transfer {
  outcome what = outcome::none_now;
  std::size_t bytes = 0;
  int error = 0;  // for outcome::broken
};

[[nodiscard]] transfer try_send(int fd, std::string_view data);
// Appends to `to`, at most bytes_max and at most chunk_bytes.
[[nodiscard]] transfer try_recv(int fd, std::string& to, std::size_t bytes_max);

[[nodiscard]] std::string how_it_ended(const transfer& last);           // for eof and broken
[[nodiscard]] std::string of_bytes(std::size_t done, std::size_t all);  // "3 of 10 bytes"

}  // namespace course_test
