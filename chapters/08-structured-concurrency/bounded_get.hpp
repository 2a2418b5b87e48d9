// SPDX-License-Identifier: MIT
// One GET whose body is kept in memory. If `io` is a cancel_source, a cancel ends the GET wherever
// it is, because chapter 07's code starts every request through the handle that it was given.
// Owns     the connection, while it runs, and the body.
// Lifetime the queue, `request` and the source must live until the task has ended.
// Threads  the one that runs the queue; resolving a name blocks it.
// Errors   those of http::get(). A cancel is one of them (ECANCELED).
// Rule     the head has at most head_bytes_max bytes, and the body at most body_bytes_max.
// See      http_get.hpp of chapter 07
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "http_get.hpp"
#include "io_queue.hpp"
#include "response_head.hpp"
#include "task.hpp"

namespace uring::http {

// get() writes the body into an object like this one, which keeps it in memory.
class body_in_memory {
 public:
  static constexpr std::size_t body_bytes_max = 64 * 1024 * 1024;

  task<> begin() { co_return; }

  task<> add(std::span<const std::byte> data) {
    if (data.size() > body_bytes_max - body_.size()) throw bad_response{"its body is too large"};
    body_.append(reinterpret_cast<const char*>(data.data()), data.size());
    co_return;
  }

  task<> keep() { co_return; }

  [[nodiscard]] std::string take() && { return std::move(body_); }

 private:
  std::string body_;
};

// Returns the body.
inline task<std::string> bounded_get(io_handle io, const get_request& request) {
  body_in_memory body;
  co_await get(io, request, body);
  co_return std::move(body).take();
}

}  // namespace uring::http
