// SPDX-License-Identifier: MIT
// One GET that ends when its source is canceled, wherever it is: chapter 07's, in which every wait
// listens.
// Owns     the connection, while it runs, and the body.
// Lifetime `context`, `request` and `source` must live until the task has ended.
// Threads  the one that runs `context`; resolving a name blocks it.
// Errors   those of http_get(), also when it was canceled (ECANCELED).
// Rule     head and body are bounded, by http_input's head_bytes_max and body_bytes_max.
// See      http_get.hpp of chapter 07
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "bounded_io.hpp"
#include "cancel_source.hpp"
#include "http_get.hpp"
#include "io_context.hpp"
#include "response_head.hpp"
#include "task.hpp"

namespace uring {

// Where http_get() puts a body that is kept in memory.
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

// The body.
inline task<std::string> bounded_get(io_context& context, const get_request& request,
                                     cancel_source& source) {
  const auto until_canceled = [&source](const auto& each) { return cancelable(each, source); };
  body_in_memory body;
  co_await http_get(context, request, body, until_canceled);
  co_return std::move(body).take();
}

}  // namespace uring
