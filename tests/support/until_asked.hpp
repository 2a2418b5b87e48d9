// SPDX-License-Identifier: MIT
// A wait that ends when a source is canceled, and never by itself: it hangs by construction. It
// does not use the kernel's cancellation, which is a later task.
// Lifetime it lives in the awaiting frame.
// Threads  the one that runs the context.
// Errors   none. If nobody cancels, io_context::run() throws: nothing is in flight.
#pragma once

#include <liburing.h>

#include <coroutine>

#include "cancel_source.hpp"
#include "io_context.hpp"
#include "io_operation.hpp"

namespace course_test {

class until_asked final : uring::cancel_target, uring::io_operation {
 public:
  until_asked(uring::io_context& context, uring::cancel_source& source) noexcept
      : io_operation{&on_completion}, context_{context}, source_{source} {}

  bool await_ready() const noexcept { return source_.is_canceled(); }
  void await_suspend(std::coroutine_handle<> awaiting) noexcept {
    continuation_ = awaiting;
    source_.watch(static_cast<cancel_target&>(*this));
  }
  void await_resume() const noexcept {}

 private:
  static void on_completion(io_operation& self, const uring::completion&) {
    static_cast<until_asked&>(self).continuation_.resume();
  }

  void ask_to_end() override {
    context_.start(*this, [](::io_uring_sqe& sqe) { ::io_uring_prep_nop(&sqe); });
  }

  uring::io_context& context_;
  uring::cancel_source& source_;
  std::coroutine_handle<> continuation_;
};

}  // namespace course_test
