// SPDX-License-Identifier: MIT
// A table of files that the kernel has looked up already. The queue's requests name a slot of the
// table in place of a descriptor.
// Owns     the registration; a queue has at most one. A slot keeps its file open, even if the
//          descriptor that was added is closed.
// Lifetime the queue must outlive the table, and the table must outlive every file_slot.
// Threads  the one that runs the queue.
// Errors   std::system_error if the kernel refuses the table (EBUSY: the queue has one already) or
//          a file. A full table is no error: add() returns an empty slot, and requests use the
//          descriptor.
// Rule     a slot is given out again only after its file has been taken out. Requests that have
//          begun keep their file, but a linked request that still waits for its turn finds the slot
//          empty.
// See      io_uring_register_files(3), io_uring_register_files_update(3)
#pragma once

#include <liburing.h>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "io_queue.hpp"
#include "todo.hpp"

namespace uring {

// The file of a request: a descriptor, or a slot.
//   with_flags(read_op(io, file.number, buffer, offset), file.flags)
struct file_ref {
  int number;
  std::uint8_t flags;  // IOSQE_FIXED_FILE: the number is a slot's
};

class registered_files;

// A place in the table. The destructor takes its file out, and makes the place free again.
class [[nodiscard]] file_slot {
 public:
  file_slot() noexcept = default;
  file_slot(registered_files& table, int index) noexcept : table_{&table}, index_{index} {}
  file_slot(file_slot&& other) noexcept
      : table_{std::exchange(other.table_, nullptr)},
        index_{other.index_},
        holds_file_{other.holds_file_} {}
  file_slot& operator=(file_slot other) noexcept {
    std::swap(table_, other.table_);
    std::swap(index_, other.index_);
    std::swap(holds_file_, other.holds_file_);
    return *this;
  }
  ~file_slot();

  [[nodiscard]] explicit operator bool() const noexcept { return table_ != nullptr; }
  [[nodiscard]] int index() const noexcept {
    assert(table_ != nullptr && "no slot: was the table full?");
    return index_;
  }
  [[nodiscard]] bool holds_file() const noexcept { return holds_file_; }

  // For the code that fills or empties it: add(), and the requests of direct_operations.hpp.
  void set_filled() noexcept { holds_file_ = true; }
  void set_empty() noexcept { holds_file_ = false; }

 private:
  registered_files* table_ = nullptr;
  int index_ = 0;
  bool holds_file_ = false;
};

// The slot, or the descriptor if the table was full.
[[nodiscard]] inline file_ref file_of(const file_slot& slot, int fd) noexcept {
  if (!slot) return {.number = fd, .flags = 0};
  return {.number = slot.index(), .flags = IOSQE_FIXED_FILE};
}

class registered_files {
 public:
  // A table of `slots` empty slots. If RLIMIT_NOFILE is less, liburing raises its soft limit.
  registered_files(io_queue& queue, unsigned slots);
  registered_files(registered_files&&) = delete;  // slots hold its address
  ~registered_files() {
    assert(used_ == 0 && "a slot is still in use");
    ::io_uring_unregister_files(&queue_.handle());
  }

  [[nodiscard]] std::size_t size() const noexcept { return slots_; }
  [[nodiscard]] std::size_t used() const noexcept { return used_; }

  // Returns a free slot without a file, for a request to fill, or an empty object if none is free.
  [[nodiscard]] file_slot reserve() noexcept {
    if (free_.empty()) return {};
    const int index = free_.back();
    free_.pop_back();
    ++used_;
    return {*this, index};
  }

  // Puts the file of `fd` into a slot, and returns the slot. First call reserve(). If the table is
  // full, the result is an empty object: return it. Then call io_uring_register_files_update()
  // with &queue_.handle(), the slot's index, an array of descriptors, and its length, which is 1
  // here. The call returns how many descriptors it has put into the table, or -errno. On -errno,
  // throw with common::throw_error(result, "io_uring_register_files_update"). The slot is not lost
  // then, because its destructor gives it back. Otherwise mark the slot with set_filled().
  file_slot add(int fd) {
    assert(fd >= 0 && "-1 would take a file out");
    COURSE_TODO("11.1");
  }

 private:
  friend class file_slot;

  // A slot was destroyed. If it holds a file, takes the file out of the table, with the same call
  // as in add(), but with the descriptor -1. If the kernel refuses this, the slot still holds the
  // file, and must never be given out again. If the file was taken out, or if there was none, the
  // index is free again: free_.push_back(). Do not throw.
  void take_back(int index, bool holds_file) noexcept {
    --used_;
    COURSE_TODO("11.1");
  }

  io_queue& queue_;
  std::size_t slots_;
  std::size_t used_ = 0;
  std::vector<int> free_;  // with room for all: push_back() allocates nothing
};

inline registered_files::registered_files(io_queue& queue, unsigned slots)
    : queue_{queue}, slots_{slots} {
  free_.reserve(slots);
  for (unsigned index = slots; index > 0; --index) free_.push_back(static_cast<int>(index - 1));
  const int result = ::io_uring_register_files_sparse(&queue.handle(), slots);
  if (result < 0) common::throw_error(result, "io_uring_register_files_sparse");
}

inline file_slot::~file_slot() {
  if (table_ != nullptr) table_->take_back(index_, holds_file_);
}

}  // namespace uring
