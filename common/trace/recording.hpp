// SPDX-License-Identifier: MIT
// The recording that all taps write to: numbers for events, threads, frames and addresses, and what
// was last seen of every ring.
// Owns     the file that the environment's COURSE_TRACE names; without it nothing is recorded. It
//          is never closed, since programs end in many ways.
// Threads  any that has made a `locked`.
// Rule     what has happened to the rings is written before the next event: most of what a program
//          does to them is inlined, and can only be seen in their memory. A line is written at
//          once: a crash leaves all that went before it.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace course_trace {

// A ring, and how far it was looked at.
struct ring_state {
  const void* key;  // its ::io_uring, or what else it was found by
  int number;
  int thread;  // the last to enter it: no other thread looks at it
  ::io_uring queues;
  const unsigned* prepared;  // SQEs up to here are filled in; *ktail may be behind
  bool is_raw;               // its slots name SQEs; liburing's do so only when it submits
  unsigned sqes_seen = 0;
  unsigned taken_seen = 0;
  unsigned cqes_seen = 0;
  unsigned head_seen = 0;
};

// A ring of buffers, which the program gives back by its tail.
struct buffers_state {
  const ::io_uring_buf_ring* memory;
  unsigned mask;
  int group;
  const void* ring;  // its key
  std::uint16_t tail_seen;
};

struct frame_state {
  std::size_t bytes;
  int number;
};

class recording {
 public:
  [[nodiscard]] static recording* instance() noexcept;  // null: nothing is to be recorded

  // {"n":4,"th":0,"e":"KIND",FIELDS}; `fields` is printf's, and has ' for ".
  [[gnu::format(printf, 3, 4)]] void write(const char* kind, const char* fields, ...);
  void write_indices(const char* kind, const ring_state& ring, const char* what, int value);
  void look();

  void add(const void* key, const ::io_uring& queues, const unsigned* prepared, bool is_raw);
  [[nodiscard]] ring_state* find(const void* key) noexcept;
  void remove(const void* key);
  [[nodiscard]] static int thread() noexcept;

  // f3+0x80 inside a frame; a1 elsewhere in memory; a number that is no address as it is
  [[nodiscard]] std::string name_of(std::uint64_t word);
  [[nodiscard]] int frame_of(const void* frame) const noexcept;  // 0: not one of ours
  int make_frame(void* frame, std::size_t bytes);
  void forget_frame(void* frame) { frames_.erase(reinterpret_cast<std::uintptr_t>(frame)); }

  std::mutex mutex;
  std::vector<buffers_state> buffers;

 private:
  explicit recording(int file) noexcept : file_{file} {}
  void begin();
  void look_at(ring_state& ring);
  void write_sqe(const ring_state& ring, unsigned index);
  void write_cqe(const ring_state& ring, unsigned index);

  int file_;
  unsigned count_ = 0;
  int frames_made_ = 0;
  std::map<std::uintptr_t, frame_state> frames_;
  std::unordered_map<std::uint64_t, std::string> addresses_;
  std::unordered_map<std::uint64_t, std::string> user_data_;  // as it was called when submitted
  std::vector<ring_state> rings_;
  int rings_made_ = 0;
};

// As long as it lives, no other thread writes: if (const locked to; to) to->write(…)
// find() is null also where nothing is recorded.
class locked {
 public:
  locked() : to_{recording::instance()} {
    if (to_ == nullptr) return;
    to_->mutex.lock();
    to_->look();
  }
  locked(locked&&) = delete;
  ~locked() {
    if (to_ != nullptr) to_->mutex.unlock();
  }
  explicit operator bool() const noexcept { return to_ != nullptr; }
  recording* operator->() const noexcept { return to_; }
  ring_state* find(const void* key) const noexcept { return to_ ? to_->find(key) : nullptr; }

 private:
  recording* to_;
};

}  // namespace course_trace

// The linker gives these names: NAME, called by the program, is __wrap_NAME, and the library's own
// is __real_NAME.
#define COURSE_WRAPPED(result, name, ...) \
  result __real_##name(__VA_ARGS__);      \
  result __wrap_##name(__VA_ARGS__);      \
  result __wrap_##name(__VA_ARGS__)
