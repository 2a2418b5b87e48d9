// SPDX-License-Identifier: MIT
// A request that completes many times, and the record of whether it is in flight.
// Lifetime from ensure_armed() until disarm() has returned, it must be neither moved nor destroyed,
//          because the kernel has its address.
// Threads  the one that runs the queue.
// Errors   std::system_error if the ring takes no more requests.
// Rule     at most one request of this object is in flight. It ends with its final completion, the
//          one without IORING_CQE_F_MORE, whatever the res is. A cancel only asks it to end.
// See      io_uring_multishot(7), io_uring_prep_cancel(3)
#pragma once

#include <liburing.h>

#include <cassert>
#include <coroutine>
#include <cstdint>
#include <utility>

#include "io_handle.hpp"
#include "io_operation.hpp"
#include "io_queue.hpp"
#include "todo.hpp"

namespace uring {

class multishot_request : public io_operation {
 public:
  struct until_disarmed;

  // `on_completion` is called with each completion, and must call note() first.
  multishot_request(const io_handle& io, function* on_completion) noexcept
      : io_operation{on_completion}, io_{io} {}
  ~multishot_request() {
    assert((!is_armed_ || queue().in_flight() == 0) && "it is in flight: co_await disarm()");
  }

  [[nodiscard]] io_queue& queue() const noexcept { return io_.queue(); }
  [[nodiscard]] bool is_armed() const noexcept { return is_armed_; }  // in flight

  // Returns whether a request is in flight, and keeps this in is_armed_. If one is in flight
  // already, starts no other, even if the queue is stopping or io_ was canceled. Otherwise, if
  // queue().is_stopping(), starts none, because the queue would cancel it immediately. Otherwise
  // calls io_.start(*this, prepare), which returns false, and starts none, if io_ was canceled. The
  // new request was not asked to end yet (is_asked_to_end_).
  template <typename Prepare>
  bool ensure_armed(const Prepare& prepare) {
    COURSE_TODO("10.2");
  }

  // Asks the request to end, but only if it is in flight, and only once (is_asked_to_end_). As in
  // chapter 08's cancel_source, queue().start_unheard() starts a cancel, and
  // io_uring_prep_cancel64() prepares it, with user_data() as a number and no flags. More
  // completions of the request may come before the final one.
  void ask_to_end() {
    COURSE_TODO("10.3");
  }

  // co_await request.disarm(): asks it to end, and returns when nothing is in flight any more.
  [[nodiscard("it waits when it is awaited")]] until_disarmed disarm() noexcept;

 protected:
  // A completion has come. Keeps in is_armed_ whether the request is still in flight. Returns the
  // completion, with -ECANCELED instead of an -EINTR that means the same.
  completion note(const completion& done) noexcept {
    COURSE_TODO("10.2");
    return io_.as_canceled(done);
  }

  // After the final completion, resumes the coroutine that awaits disarm(). That coroutine may
  // destroy this object.
  void resume_disarming() {
    if (!is_armed_ && disarming_) std::exchange(disarming_, nullptr).resume();
  }

 private:
  // The address that start() gave the kernel. A cancel names this request by its address.
  io_operation* user_data() noexcept { return this; }

  io_handle io_;
  bool is_armed_ = false;
  bool is_asked_to_end_ = false;
  std::coroutine_handle<> disarming_;  // waits for the final completion
};

struct multishot_request::until_disarmed {
  // True if there is nothing to wait for.
  bool await_ready() const noexcept {
    COURSE_TODO("10.3");
  }
  // Asks the request to end, and keeps the handle in disarming_, from which the final completion
  // resumes it. If ask_to_end() throws, the coroutine goes on, so the handle must not be in
  // disarming_ then.
  void await_suspend(std::coroutine_handle<> awaiting) const {
    COURSE_TODO("10.3");
  }
  void await_resume() const noexcept {}

  multishot_request& request;
};

inline multishot_request::until_disarmed multishot_request::disarm() noexcept {
  return until_disarmed{*this};
}

}  // namespace uring
