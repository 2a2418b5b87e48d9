// SPDX-License-Identifier: MIT
// A kernel that answers by script, in orders that the real one rarely gives. For programs that link
// test-scripted-ring: there the linker puts functions of ours before io_uring_submit,
// io_uring_submit_and_wait_timeout, io_uring_register_sync_cancel, io_uring_get_events and what
// io_uring_sqring_wait calls. manual_ring.hpp is for tests that answer one at a time.
// Owns     the script, while the object lives; one at a time.
// Lifetime make it before the io_context whose ring it plays, and let it go after that.
// Threads  the one that runs the io_context. Without such an object every call is the real one.
// Errors   std::logic_error out of io_context::run() if the loop waits and the script has nothing.
// Rule     no request reaches the kernel: it is taken from the queue and handed to the script.
// See      ld(1), --wrap
#pragma once

#include <liburing.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace course_test {

// One CQE. Its flags: IORING_CQE_F_MORE, IORING_CQE_F_NOTIF, or in_buffer().
struct scripted_answer {
  std::uint64_t user_data;
  std::int32_t res;
  std::uint32_t flags = 0;
};

inline constexpr std::uint32_t cqe_more = IORING_CQE_F_MORE;
inline constexpr int socket_number = 99;  // nobody's: no request reaches the kernel

// The flags of a completion whose bytes lie in this buffer of a pool.
[[nodiscard]] constexpr std::uint32_t in_buffer(std::uint16_t buffer_id) noexcept {
  return IORING_CQE_F_BUFFER | std::uint32_t{buffer_id} << IORING_CQE_BUFFER_SHIFT;
}

// What was submitted since the last turn, in order; and what completes in this one.
using script = std::function<std::vector<scripted_answer>(const std::vector<::io_uring_sqe>&)>;

// Takes the prepared SQEs out of a submission queue, as the kernel would.
[[nodiscard]] std::vector<::io_uring_sqe> take_prepared(::io_uring& ring);

class [[nodiscard]] scripted_ring {
 public:
  explicit scripted_ring(script play);
  scripted_ring(scripted_ring&&) = delete;
  ~scripted_ring();

  // The next wait takes what was submitted and answers by the script, and then fails with `error`
  // (EINTR, ETIME, EAGAIN): a wait and its completions are two things.
  void fail_next_wait(int error);

  // io_uring_register_sync_cancel ends every request with -ECANCELED, but not in the next `calls`:
  // a thread of the kernel that reads or writes a file does not stop for a cancel.
  void ignore_cancels(int calls);

  // How often the kernel would have been entered so far.
  [[nodiscard]] int system_calls() const;

  // How long the last wait was to last at most; without a value it had no limit.
  [[nodiscard]] std::optional<std::chrono::milliseconds> last_limit() const;
};

// How far the kernel's thread of IORING_SETUP_SQPOLL is when a program calls io_uring_submit().
enum class poller_pace {
  ahead,  // it has taken everything already: the call counts 0 submissions
  behind  // it takes nothing before the program waits for it, by io_uring_sqring_wait()
};

// That thread, as slow or as quick as the test says, while the object lives. Make the ring first.
class [[nodiscard]] scripted_poller {
 public:
  explicit scripted_poller(poller_pace pace);
  scripted_poller(scripted_poller&&) = delete;
  ~scripted_poller();
};

}  // namespace course_test
